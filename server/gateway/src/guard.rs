//! What holds for every request, before and after its handler.
//!
//! A browser can be made to talk to an open port of its own machine by any page that it shows. So the name that it was
//! given for this port is checked (a page can point a name of its own here), the page's origin is checked, and a request
//! that changes something must have a content type that a page cannot send unasked.

use std::net::{IpAddr, SocketAddr};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{ALLOW, CONTENT_TYPE, HOST, HeaderName, ORIGIN, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::gateway::{Gateway, Shared};
use crate::metrics::NO_ROUTE;
use crate::problem::{PROBLEM_JSON, Problem};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const CROSS_ORIGIN_RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
/// Content types that a page of any origin may send without asking first (Fetch standard, "CORS-safelisted").
const SIMPLE_CONTENT_TYPES: [&str; 3] = ["application/x-www-form-urlencoded", "multipart/form-data", "text/plain"];
/// How long a request waits for what is deployed to be known.
const CATCH_UP_WAIT_MAX: Duration = Duration::from_secs(10);
/// How often it is looked whether it is.
const CATCH_UP_LOOK_EVERY: Duration = Duration::from_millis(2);
/// What a header costs beside its name and value: colon, blank, end of line.
const HEADER_OVERHEAD_BYTES: usize = 4;

/// The two ends of the connection that a request came by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    pub(crate) remote: SocketAddr,
    pub(crate) local: SocketAddr,
}

/// Names the request, refuses what must not be let in, and makes every error a problem document.
pub(crate) async fn finish(State(gateway): State<Gateway>, request: Request, next: Next) -> Response {
    let start = Instant::now();
    let id = next_request_id();
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let checked = match check(&request, &gateway) {
        Ok(()) if route.as_ref().is_some_and(|route| needs_plugins(route.as_str())) => caught_up(&gateway).await,
        checked => checked,
    };
    let response = match checked {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    };
    let mut response = as_problem(response, &id);
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CROSS_ORIGIN_RESOURCE_POLICY, HeaderValue::from_static("same-origin"));
    if let Ok(id) = HeaderValue::from_str(&id) {
        headers.insert(REQUEST_ID, id);
    }
    let route = route.as_ref().map_or(NO_ROUTE, MatchedPath::as_str);
    let status = response.status().as_u16();
    tracing::debug!(%method, route, status, request_id = id, took_ms = start.elapsed().as_millis(), "answered");
    gateway
        .metrics
        .answered(method.as_str(), route, status, start.elapsed());
    response
}

/// Whether what is deployed decides about the answer.
fn needs_plugins(route: &str) -> bool {
    [
        "/api/v1/modules",
        "/api/v1/processors",
        "/api/v1/topics/{topic}/plugins",
        "/api/v1/topics/{topic}/records",
    ]
    .iter()
    .any(|prefix| route.starts_with(prefix))
}

/// Comes back when this node knows what is deployed: just after a start, nothing shows that is there all the same, and a
/// record would go past the plugins of its topic.
async fn caught_up(gateway: &Shared) -> Result<(), Problem> {
    let until = tokio::time::Instant::now() + CATCH_UP_WAIT_MAX;
    while !gateway.plugins.is_caught_up() {
        if tokio::time::Instant::now() >= until {
            let detail = "this node has not read yet what is deployed";
            return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready", detail).retryable());
        }
        tokio::time::sleep(CATCH_UP_LOOK_EVERY).await;
    }
    Ok(())
}

/// Every answer of 400 and up leaves as a problem document, also those that the framework made.
fn as_problem(mut response: Response, id: &str) -> Response {
    let status = response.status();
    if !status.is_client_error() && !status.is_server_error() {
        return response;
    }
    let is_document = response
        .headers()
        .get(CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes() == PROBLEM_JSON.as_bytes());
    if is_document {
        return response;
    }
    let problem = response.extensions_mut().remove::<Problem>();
    let problem = problem.unwrap_or_else(|| Problem::of_status(status, String::new()));
    if status.is_server_error() {
        tracing::warn!(
            request_id = id,
            status = status.as_u16(),
            detail = problem.detail(),
            "an HTTP request failed"
        );
    }
    let mut document = problem.with_request_id(id).document();
    for name in [ALLOW, RETRY_AFTER] {
        if let Some(value) = response.headers().get(&name) {
            document.headers_mut().insert(name, value.clone());
        }
    }
    document
}

fn check(request: &Request, gateway: &Shared) -> Result<(), Problem> {
    check_header_size(request, gateway.limits.header_bytes_max)?;
    let ends = request.extensions().get::<Ends>().copied();
    let host = the_host(request)?;
    if !is_allowed(&host, ends, &gateway.allowed_hosts) {
        return Err(Problem::new(
            StatusCode::FORBIDDEN,
            "host_not_allowed",
            format!("{host} is no name of this port; others can be allowed by configuration"),
        ));
    }
    check_origin(request.headers(), &host, &gateway.allowed_hosts)
}

fn check_header_size(request: &Request, limit: usize) -> Result<(), Problem> {
    let fields = request.headers().iter();
    let fields = fields.map(|(name, value)| name.as_str().len() + value.len() + HEADER_OVERHEAD_BYTES);
    let target = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
    if fields.sum::<usize>() + target <= limit {
        return Ok(());
    }
    Err(Problem::new(
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        "header_too_large",
        format!("a request's target and headers may have {limit} bytes at most"),
    ))
}

/// The one host that the request names.
fn the_host(request: &Request) -> Result<Authority, Problem> {
    let mut named = request.headers().get_all(HOST).iter();
    let malformed = || Problem::invalid("a request has exactly one header `host`, which is `name` or `name:port`");
    let (Some(host), None) = (named.next(), named.next()) else {
        return Err(malformed());
    };
    let host: Authority = host
        .to_str()
        .ok()
        .and_then(|host| host.parse().ok())
        .ok_or_else(malformed)?;
    if host.as_str().contains('@') {
        return Err(malformed());
    }
    // A target in absolute form names the host, too (RFC 9112, 3.2.2).
    match request.uri().authority() {
        Some(authority) if *authority != host => Err(malformed()),
        _ => Ok(host),
    }
}

fn is_allowed(host: &Authority, ends: Option<Ends>, allowed: &[String]) -> bool {
    if is_configured(host, allowed) {
        return true;
    }
    let Some(ends) = ends else { return false };
    let port = host.port_u16().unwrap_or(80);
    let name = host.host();
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let is_ours = match address {
        Ok(address) => address.is_loopback() || address == ends.local.ip().to_canonical(),
        Err(_) => {
            let name = name.trim_end_matches('.').to_ascii_lowercase();
            name == "localhost" || name.ends_with(".localhost")
        }
    };
    is_ours && port == ends.local.port()
}

fn is_configured(host: &Authority, allowed: &[String]) -> bool {
    allowed
        .iter()
        .any(|allowed| allowed.eq_ignore_ascii_case(host.as_str()) || allowed.eq_ignore_ascii_case(host.host()))
}

/// A browser says from which page a request comes; only pages of this door may.
fn check_origin(headers: &HeaderMap, host: &Authority, allowed: &[String]) -> Result<(), Problem> {
    for origin in headers.get_all(ORIGIN) {
        let authority = origin.to_str().ok().and_then(|origin| {
            let rest = origin
                .strip_prefix("http://")
                .or_else(|| origin.strip_prefix("https://"))?;
            rest.parse::<Authority>().ok()
        });
        let is_ours = authority.is_some_and(|authority| authority == *host || is_configured(&authority, allowed));
        if !is_ours {
            return Err(Problem::new(
                StatusCode::FORBIDDEN,
                "origin_not_allowed",
                "requests from pages of other origins are not taken",
            ));
        }
    }
    Ok(())
}

/// Around every handler: a request that changes something has a content type that is not simple.
pub(crate) async fn want_content_type(request: Request, next: Next) -> Result<Response, Problem> {
    let is_change = matches!(*request.method(), Method::POST | Method::PUT | Method::PATCH);
    if !is_change || has_own_content_type(request.headers()) {
        return Ok(next.run(request).await);
    }
    Err(Problem::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "unsupported_media_type",
        "a request that changes something says its content type, as in `content-type: application/json`",
    ))
}

fn has_own_content_type(headers: &HeaderMap) -> bool {
    let said = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = said.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    let is_simple = SIMPLE_CONTENT_TYPES
        .iter()
        .any(|simple| simple.eq_ignore_ascii_case(essence));
    !essence.is_empty() && !is_simple
}

/// Unique in this process and, as good as surely, between restarts.
fn next_request_id() -> String {
    static START: OnceLock<u64> = OnceLock::new();
    static COUNT: AtomicU64 = AtomicU64::new(1);
    let start = START.get_or_init(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        since.as_secs() & 0xffff_ffff
    });
    format!("{start:08x}-{:06x}", COUNT.fetch_add(1, Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(local: &str) -> Option<Ends> {
        let local = local.parse().unwrap();
        Some(Ends { remote: local, local })
    }

    fn allows(host: &str, local: &str, configured: &[&str]) -> bool {
        let configured: Vec<String> = configured.iter().map(ToString::to_string).collect();
        is_allowed(&host.parse().unwrap(), ends(local), &configured)
    }

    #[test]
    fn loopback_names_are_allowed_with_the_port_they_came_by() {
        for host in [
            "localhost:8080",
            "LOCALHOST:8080",
            "127.0.0.1:8080",
            "127.9.9.9:8080",
            "[::1]:8080",
            "a.localhost:8080",
        ] {
            assert!(allows(host, "127.0.0.1:8080", &[]), "{host}");
        }
        for host in [
            "localhost",
            "localhost:8081",
            "evil.example:8080",
            "127.0.0.1.evil.example:8080",
            "10.0.0.1:8080",
        ] {
            assert!(!allows(host, "127.0.0.1:8080", &[]), "{host}");
        }
    }

    #[test]
    fn the_address_of_the_connection_and_configured_names_are_allowed() {
        assert!(allows("10.0.0.1:8080", "10.0.0.1:8080", &[]));
        assert!(allows("10.0.0.1:8080", "[::ffff:10.0.0.1]:8080", &[]));
        assert!(allows("streams.example", "10.0.0.1:8080", &["streams.example"]));
        assert!(allows("streams.example:9", "10.0.0.1:8080", &["streams.example"]));
        assert!(!allows("streams.example:9", "10.0.0.1:8080", &["streams.example:8"]));
    }

    #[test]
    fn only_origins_of_this_door_are_let_in() {
        let host: Authority = "localhost:8080".parse().unwrap();
        let checked = |origin: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ORIGIN, origin.parse().unwrap());
            check_origin(&headers, &host, &["ui.example".to_owned()]).is_ok()
        };
        assert!(checked("http://localhost:8080") && checked("https://ui.example"));
        for origin in [
            "null",
            "http://evil.example",
            "http://localhost:9090",
            "file://",
            "http://localhost",
        ] {
            assert!(!checked(origin), "{origin}");
        }
        assert!(check_origin(&HeaderMap::new(), &host, &[]).is_ok());
    }
}
