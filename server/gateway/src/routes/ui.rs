//! The UI's routes: where it is, and the way there.

use axum::http::HeaderMap;
use axum::response::{Redirect, Response};

use super::parameters::Named;
use crate::problem::{Document, Problem};
use crate::web_ui::{FILES, answer};

const PLACE: &str = "/ui/";

/// To the UI
#[utoipa::path(
    get,
    path = "/",
    tag = "operations",
    operation_id = "root",
    responses((status = 307, description = "The UI is at `/ui/`"))
)]
pub(crate) async fn root() -> Redirect {
    Redirect::temporary(PLACE)
}

/// The browser's UI
#[utoipa::path(
    get,
    path = "/ui/",
    tag = "operations",
    operation_id = "ui",
    responses(
        (status = 200, description = "The page", body = String, content_type = "text/html"),
        (status = 404, description = "The program was built without the UI", body = Document,
            content_type = "application/problem+json"),
    )
)]
pub(crate) async fn page(headers: HeaderMap) -> Result<Response, Problem> {
    answer(FILES, "", &headers)
}

/// A file of the UI, or the page for an address that it knows
#[utoipa::path(
    get,
    path = "/ui/{*path}",
    tag = "operations",
    operation_id = "ui_path",
    params(("path" = String, Path, description = "A file's path, or a page's")),
    responses(
        (status = 200, description = "The file or page", body = String, content_type = "text/html"),
        (status = 404, description = "There is no such file, or the program was built without the UI", body = Document,
            content_type = "application/problem+json"),
    )
)]
pub(crate) async fn file(Named(path): Named, headers: HeaderMap) -> Result<Response, Problem> {
    answer(FILES, &path, &headers)
}
