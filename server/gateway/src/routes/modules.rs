//! Modules: upload, list, look at, delete.
//!
//! A module is written as pieces and then the record that says it is whole. Until that record is there, there is no such
//! module, and who uploads it again writes it from the beginning.

use axum::Json;
use axum::extract::State;
use axum::http::header::LOCATION;
use axum::http::{HeaderName, StatusCode};
use bytes::Bytes;
use plugin::deployment::{ModuleRecord, PIECE_BYTES_MAX, PluginsKey, encode_value};
use plugin::{Digest, ModuleInfo, Parameter};
use serde::Serialize;
use utoipa::ToSchema;

use super::parameters::{Caller, NamedModule};
use crate::bodies::ModuleBody;
use crate::deployments::{Kept, Writer, blocking};
use crate::gateway::Gateway;
use crate::problem::{Document, Problem};

/// What is known of a module.
#[derive(Serialize, ToSchema)]
pub(crate) struct Module {
    /// By this it is named: the SHA-256 of its bytes in lower-case hex.
    #[schema(min_length = 64, max_length = 64)]
    sha256: String,
    /// In bytes.
    size: u64,
    /// The kind of plugin it is: `partitioner`, `serde`, `validator`, `window-aggregator`, `keyed-aggregator` or
    /// `migrating-aggregator`.
    world: &'static str,
    /// The module's own words.
    name: String,
    version: String,
    doc: String,
    /// What can be set in `config`.
    parameters: Vec<ModuleParameter>,
}

/// A setting that a module understands.
#[derive(Serialize, ToSchema)]
pub(crate) struct ModuleParameter {
    name: String,
    doc: String,
    /// What holds if nothing is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<String>,
    required: bool,
    /// Whether answers leave its value out.
    secret: bool,
}

/// All modules, by digest.
#[derive(Serialize, ToSchema)]
pub(crate) struct Modules {
    modules: Vec<Module>,
}

impl Module {
    fn show(info: &ModuleInfo) -> Self {
        Module {
            sha256: info.digest.to_string(),
            size: info.size_bytes,
            world: info.world.name(),
            name: info.descriptor.name.clone(),
            version: info.descriptor.version.clone(),
            doc: info.descriptor.doc.clone(),
            parameters: info.descriptor.parameters.iter().map(ModuleParameter::show).collect(),
        }
    }
}

impl ModuleParameter {
    fn show(parameter: &Parameter) -> Self {
        ModuleParameter {
            name: parameter.name.clone(),
            doc: parameter.doc.clone(),
            default: parameter.fallback.clone(),
            required: parameter.required,
            secret: parameter.secret,
        }
    }
}

type Uploaded = (StatusCode, [(HeaderName, String); 1], Json<Module>);

/// Upload a module
///
/// The body is a WebAssembly component. It is looked at, compiled and asked to describe itself before it is taken; what
/// is wrong with it is told by `code`. A module that is there already is not written again.
#[utoipa::path(
    post,
    path = "/api/v1/modules",
    tag = "modules",
    operation_id = "upload_module",
    request_body(content = Vec<u8>, content_type = "application/wasm", description = "The component, of 64 MiB at most"),
    responses(
        (status = 200, description = "It was there", body = Module),
        (status = 201, description = "It can be used", body = Module),
        (status = 422, description = "It cannot be run", body = Document, content_type = "application/problem+json"),
        (status = "default", description = "What went wrong", body = Document, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn upload(
    State(gateway): State<Gateway>,
    Caller(context): Caller,
    body: ModuleBody,
) -> Result<Uploaded, Problem> {
    let (host, bytes) = (gateway.host.clone(), body.bytes.clone());
    let module = blocking(move || host.load(&bytes)).await??;
    let info = module.info();
    let writer = Writer::new(&gateway, &context);
    let _turn = gateway.changes.modules.lock().await;
    writer.catch_up(Kept::Modules).await?;
    let status = if gateway.plugins.module(&info.digest).is_some() {
        StatusCode::OK
    } else {
        write_module(&writer, info.digest, &body.bytes).await?;
        StatusCode::CREATED
    };
    let location = format!("/api/v1/modules/{}", info.digest);
    Ok((status, [(LOCATION, location)], Json(Module::show(info))))
}

async fn write_module(writer: &Writer<'_>, digest: Digest, module: &Bytes) -> Result<(), Problem> {
    let mut pieces = Vec::with_capacity(module.len().div_ceil(PIECE_BYTES_MAX));
    let mut rest = module.clone();
    while !rest.is_empty() {
        let piece = rest.split_to(rest.len().min(PIECE_BYTES_MAX));
        let number = u32::try_from(pieces.len()).expect("a module has no more pieces than bytes");
        pieces.push((PluginsKey::Piece(digest, number).encode(), Some(piece)));
    }
    let record = ModuleRecord {
        size_bytes: module.len() as u64,
        pieces: u32::try_from(pieces.len()).expect("a module has no more pieces than bytes"),
    };
    writer.write(Kept::Modules, pieces).await?;
    let whole = (PluginsKey::Module(digest).encode(), Some(encode_value(&record)));
    writer.write(Kept::Modules, vec![whole]).await
}

/// List modules
#[utoipa::path(
    get,
    path = "/api/v1/modules",
    tag = "modules",
    operation_id = "list_modules",
    responses(
        (status = 200, description = "Every module", body = Modules),
        (status = "default", description = "What went wrong", body = Document, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn list(State(gateway): State<Gateway>) -> Json<Modules> {
    let modules = gateway.plugins.modules();
    Json(Modules {
        modules: modules.iter().map(Module::show).collect(),
    })
}

/// A module
#[utoipa::path(
    get,
    path = "/api/v1/modules/{sha256}",
    tag = "modules",
    operation_id = "describe_module",
    params(("sha256" = String, Path, description = "The SHA-256 of the module's bytes")),
    responses(
        (status = 200, description = "The module", body = Module),
        (status = "default", description = "What went wrong", body = Document, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn describe(
    State(gateway): State<Gateway>,
    NamedModule(digest): NamedModule,
) -> Result<Json<Module>, Problem> {
    let info = gateway.plugins.module(&digest).ok_or_else(|| unknown(&digest))?;
    Ok(Json(Module::show(&info)))
}

/// Delete a module
///
/// Not while a processor or a topic uses it.
#[utoipa::path(
    delete,
    path = "/api/v1/modules/{sha256}",
    tag = "modules",
    operation_id = "delete_module",
    params(("sha256" = String, Path, description = "The SHA-256 of the module's bytes")),
    responses(
        (status = 204, description = "It is deleted"),
        (status = 409, description = "It is used, by what `detail` says", body = Document,
            content_type = "application/problem+json"),
        (status = "default", description = "What went wrong", body = Document, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn delete(
    State(gateway): State<Gateway>,
    Caller(context): Caller,
    NamedModule(digest): NamedModule,
) -> Result<StatusCode, Problem> {
    let writer = Writer::new(&gateway, &context);
    let _module_turn = gateway.changes.modules.lock().await;
    let _turn = gateway.changes.deployments.lock().await;
    writer.catch_up(Kept::Modules).await?;
    writer.catch_up(Kept::Deployments).await?;
    let info = gateway.plugins.module(&digest).ok_or_else(|| unknown(&digest))?;
    let users = gateway.plugins.users(&digest);
    if !users.is_empty() {
        let detail = format!("module {digest} is used by {}", users.join(", "));
        return Err(Problem::new(StatusCode::CONFLICT, "module_in_use", detail));
    }
    // The record of the whole goes first: without it there is no module, however many pieces are left.
    let pieces = info.size_bytes.div_ceil(PIECE_BYTES_MAX as u64);
    let pieces = u32::try_from(pieces).unwrap_or(u32::MAX);
    let mut tombstones = vec![(PluginsKey::Module(digest).encode(), None)];
    tombstones.extend((0..pieces).map(|piece| (PluginsKey::Piece(digest, piece).encode(), None)));
    writer.write(Kept::Modules, tombstones).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn unknown(digest: &Digest) -> Problem {
    let detail = format!("there is no module {digest}");
    Problem::new(StatusCode::NOT_FOUND, "unknown_module", detail)
}
