//! The OpenAPI document, and a page that shows it. The page asks nobody else for anything.

use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::http::{HeaderName, StatusCode};

use super::parameters::Named;
use crate::gateway::Gateway;
use crate::openapi::openapi_text;
use crate::problem::{Document, Problem};

/// Only this door's own files, and no frames around the page.
const CONTENT_SECURITY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

type Headers<const COUNT: usize> = [(HeaderName, &'static str); COUNT];

/// This document
#[utoipa::path(
    get,
    path = "/openapi.json",
    tag = "operations",
    operation_id = "openapi",
    responses((status = 200, description = "The OpenAPI document", body = serde_json::Value))
)]
pub(crate) async fn document(State(_): State<Gateway>) -> (Headers<2>, String) {
    let headers = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-cache")];
    (headers, openapi_text())
}

/// A page that shows this document
#[utoipa::path(
    get,
    path = "/docs",
    tag = "operations",
    operation_id = "docs",
    responses((status = 200, description = "The page", body = String, content_type = "text/html"))
)]
pub(crate) async fn page() -> (Headers<3>, &'static str) {
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_SECURITY_POLICY, CONTENT_SECURITY),
        (CACHE_CONTROL, "no-cache"),
    ];
    (headers, include_str!("../docs/page.html"))
}

/// What the page is made of
#[utoipa::path(
    get,
    path = "/docs/{file}",
    tag = "operations",
    operation_id = "docs_file",
    params(("file" = String, Path, description = "`page.js` or `page.css`")),
    responses(
        (status = 200, description = "The file", content((String = "text/javascript"), (String = "text/css"))),
        (status = 404, description = "There is no such file", body = Document, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn asset(Named(file): Named) -> Result<(Headers<2>, &'static str), Problem> {
    let (kind, text) = match file.as_str() {
        "page.js" => ("text/javascript; charset=utf-8", include_str!("../docs/page.js")),
        "page.css" => ("text/css; charset=utf-8", include_str!("../docs/page.css")),
        _ => return Err(Problem::of_status(StatusCode::NOT_FOUND, String::new())),
    };
    Ok(([(CONTENT_TYPE, kind), (CACHE_CONTROL, "no-cache")], text))
}
