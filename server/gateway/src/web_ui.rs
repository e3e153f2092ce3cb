//! The browser's UI, as files that the build put into the program.
//!
//! Every path that is not like a file's is the page itself, which reads its address and shows what belongs there. A program that
//! was built without the UI says so; nothing stands in for it.

use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::problem::Problem;

/// This door's own files and answers, nothing that stands inside the page, and no frames around it.
const CONTENT_SECURITY: HeaderValue = HeaderValue::from_static(
    "default-src 'self'; object-src 'none'; base-uri 'self'; form-action 'none'; frame-ancestors 'none'",
);
const PAGE: &str = "index.html";
/// Below it, a file's name changes with what is in it.
const HASHED: &str = "assets/";

/// A file as it was built.
#[derive(Debug)]
pub(crate) struct File {
    /// Its path below the UI's folder.
    name: &'static str,
    /// Of what is in it.
    hash: &'static str,
    plain: &'static [u8],
    gzip: Option<&'static [u8]>,
}

/// By name.
pub(crate) const FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/web_ui_files.rs"));

/// The file at `path` of `files`, or the page.
pub(crate) fn answer(files: &[File], path: &str, headers: &HeaderMap) -> Result<Response, Problem> {
    let find = |name: &str| files.iter().find(|file| file.name == name);
    let Some(page) = find(PAGE) else {
        let detail = "this program was built without the UI; `make release` builds both";
        return Err(Problem::new(StatusCode::NOT_FOUND, "ui_not_built", detail));
    };
    let file = match find(path) {
        Some(file) => file,
        None if path.starts_with(HASHED) || is_of_a_file(path) => {
            let detail = format!("the UI has no file {path}; a page of another release may have asked for it");
            return Err(Problem::of_status(StatusCode::NOT_FOUND, detail));
        }
        None => page,
    };
    Ok(serve(file, headers))
}

/// Whether a path that the page does not know ends like a file. Topics are named `a.svg` too, but their pages lie deeper.
fn is_of_a_file(path: &str) -> bool {
    !path.contains('/') && path.contains('.')
}

fn serve(file: &File, headers: &HeaderMap) -> Response {
    let compressed = file.gzip.filter(|_| accepts_gzip(headers));
    let suffix = if compressed.is_some() { "-gzip" } else { "" };
    let tag = format!("\"{}{suffix}\"", file.hash);
    let is_known = headers
        .get_all(IF_NONE_MATCH)
        .iter()
        .filter_map(|tags| tags.to_str().ok())
        .flat_map(|tags| tags.split(','))
        .any(|known| known.trim().trim_start_matches("W/") == tag);
    let mut response = if is_known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        compressed.unwrap_or(file.plain).into_response()
    };
    let out = response.headers_mut();
    if is_known {
        out.remove(CONTENT_TYPE);
    } else {
        out.insert(CONTENT_TYPE, HeaderValue::from_static(content_type(file.name)));
        if compressed.is_some() {
            out.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
    }
    let keep = if file.name.starts_with(HASHED) {
        "public, max-age=31536000, immutable"
    } else {
        "no-cache"
    };
    out.insert(CACHE_CONTROL, HeaderValue::from_static(keep));
    out.insert(CONTENT_SECURITY_POLICY, CONTENT_SECURITY);
    out.insert(VARY, HeaderValue::from_static("accept-encoding"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        out.insert(ETAG, tag);
    }
    response
}

/// Whether `gzip` is named and not with weight zero (RFC 9110, 12.5.3).
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT_ENCODING).iter();
    accepted
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|coding| {
            let mut parts = coding.split(';').map(str::trim);
            let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
            let is_refused = parts.any(|weight| {
                let zero = weight.strip_prefix("q=").and_then(|weight| weight.parse::<f32>().ok());
                zero.is_some_and(|weight| weight <= 0.0)
            });
            is_gzip && !is_refused
        })
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "json" => "application/json",
        "woff2" => "font/woff2",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUILT: &[File] = &[
        File {
            name: "assets/a-1.js",
            hash: "aa",
            plain: b"plain script",
            gzip: Some(b"small"),
        },
        File {
            name: "icon.svg",
            hash: "bb",
            plain: b"<svg/>",
            gzip: None,
        },
        File {
            name: PAGE,
            hash: "cc",
            plain: b"<html>",
            gzip: Some(b"small page"),
        },
    ];

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
            .collect()
    }

    fn header<'a>(response: &'a Response, name: &str) -> &'a str {
        response.headers().get(name).map_or("", |value| value.to_str().unwrap())
    }

    async fn body(response: Response) -> Vec<u8> {
        use http_body_util::BodyExt;
        response.into_body().collect().await.unwrap().to_bytes().to_vec()
    }

    #[tokio::test]
    async fn files_are_kept_for_good_and_the_page_is_asked_for_each_time() {
        let script = answer(BUILT, "assets/a-1.js", &headers(&[])).unwrap();
        assert!(header(&script, "cache-control").contains("immutable"));
        assert_eq!(header(&script, "content-type"), "text/javascript; charset=utf-8");
        assert_eq!(body(script).await, b"plain script");
        for path in ["", "index.html", "topics/a.b/messages", "processors/x"] {
            let page = answer(BUILT, path, &headers(&[])).unwrap();
            assert_eq!(header(&page, "cache-control"), "no-cache", "{path}");
            assert_eq!(header(&page, "content-type"), "text/html; charset=utf-8", "{path}");
            assert!(
                header(&page, "content-security-policy").starts_with("default-src 'self'"),
                "{path}"
            );
            assert_eq!(body(page).await, b"<html>", "{path}");
        }
    }

    #[tokio::test]
    async fn the_compressed_form_goes_to_those_who_accept_it() {
        for accepted in ["gzip", "br, GZIP;q=0.5", "deflate,gzip"] {
            let script = answer(BUILT, "assets/a-1.js", &headers(&[("accept-encoding", accepted)])).unwrap();
            assert_eq!(header(&script, "content-encoding"), "gzip", "{accepted}");
            assert_eq!(header(&script, "etag"), "\"aa-gzip\"", "{accepted}");
            assert_eq!(body(script).await, b"small", "{accepted}");
        }
        for accepted in ["", "br", "gzip;q=0", "gzip; q=0.0"] {
            let script = answer(BUILT, "assets/a-1.js", &headers(&[("accept-encoding", accepted)])).unwrap();
            assert_eq!(header(&script, "content-encoding"), "", "{accepted}");
            assert_eq!(header(&script, "vary"), "accept-encoding", "{accepted}");
        }
        let icon = answer(BUILT, "icon.svg", &headers(&[("accept-encoding", "gzip")])).unwrap();
        assert_eq!(body(icon).await, b"<svg/>");
    }

    #[tokio::test]
    async fn what_the_browser_has_is_not_sent_again() {
        for known in ["\"cc\"", "W/\"cc\"", "\"x\", \"cc\""] {
            let page = answer(BUILT, "", &headers(&[("if-none-match", known)])).unwrap();
            assert_eq!(page.status(), StatusCode::NOT_MODIFIED, "{known}");
            assert_eq!(header(&page, "etag"), "\"cc\"");
            assert!(body(page).await.is_empty());
        }
        for unknown in ["\"cc-gzip\"", "cc", "\"aa\""] {
            let page = answer(BUILT, "", &headers(&[("if-none-match", unknown)])).unwrap();
            assert_eq!(page.status(), StatusCode::OK, "{unknown}");
        }
    }

    #[test]
    fn a_file_of_another_release_is_not_the_page() {
        assert!(answer(BUILT, "assets/a-2.js", &headers(&[])).is_err());
    }

    #[test]
    fn a_program_without_the_ui_says_so() {
        let problem = answer(&[], "", &headers(&[])).unwrap_err();
        assert!(
            problem.detail().contains("built without the UI"),
            "{}",
            problem.detail()
        );
    }
}
