//! Windowed processors: deploy, list, look at, pause, resume, delete.
//!
//! A deployment is a record; what runs follows the records. What is asked for again as it is stays as it is, so a request
//! whose answer was lost can be sent again.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use plugin::running::Deployed;
use plugin::{Deployment, ProcessorName};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::parameters::{Caller, NamedProcessor, Parameters};
use super::processor_spec::{Emit, ProcessorSpec, ProcessorWindow};
use super::processor_status::ProcessorState;
use crate::bodies::SmallBody;
use crate::deployments::{Kept, Writer, blocking, delete_changelog, prepare_topics};
use crate::fields::{check_parameters, shown_config};
use crate::gateway::Gateway;
use crate::problem::{Document, Problem};

/// How many processors there may be.
const PROCESSORS_MAX: usize = 1000;

/// A deployed processor.
#[derive(Serialize, ToSchema)]
pub(crate) struct Processor {
    name: String,
    /// Counts what was deployed under the name, from 1.
    #[schema(minimum = 1)]
    version: u64,
    state: ProcessorState,
    /// The SHA-256 of its module.
    module: String,
    input: String,
    from: String,
    output: String,
    window: ProcessorWindow,
    emit: Emit,
    /// Without what the module calls secret.
    config: BTreeMap<String, String>,
    /// Where rows go that the processor refuses or breaks at.
    dead_letter_topic: String,
    /// Where its state is kept.
    changelog_topic: String,
}

/// All processors, by name.
#[derive(Serialize, ToSchema)]
pub(crate) struct Processors {
    processors: Vec<Processor>,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct DeleteParameters {
    /// Leave the topic of its state as it is.
    #[serde(default)]
    keep_state: bool,
}

/// Nothing that would have to be said.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

impl Processor {
    fn show(gateway: &Gateway, name: &ProcessorName, deployment: &Deployment) -> Self {
        let module = gateway.plugins.module(&deployment.module);
        let descriptors = module.iter().map(|module| &module.descriptor);
        Processor {
            name: name.to_string(),
            version: deployment.version,
            state: ProcessorState::of(
                deployment,
                gateway.plugins.status(name).iter().flat_map(|status| &status.tasks),
            ),
            module: deployment.module.to_string(),
            input: deployment.input.to_string(),
            from: deployment.from.to_string(),
            output: deployment.output.to_string(),
            window: ProcessorWindow::show(&deployment.window),
            emit: Emit::show(deployment.emit),
            config: shown_config(&deployment.config, descriptors),
            dead_letter_topic: name.dead_letter_topic().to_string(),
            changelog_topic: name.changelog_topic().to_string(),
        }
    }
}

/// Deploy a processor
///
/// Its topics are created where they are lacking: the output and the dead letters with as many partitions as the input,
/// and the changelog. What is deployed already as it is asked for stays as it is, with its version; a change has the next
/// version, and a processor that is paused stays so.
#[utoipa::path(
    put,
    path = "/api/v1/processors/{name}",
    tag = "processors",
    operation_id = "deploy_processor",
    params(("name" = String, Path, description = "The processor's name")),
    request_body = ProcessorSpec<'_>,
    responses(
        (status = 200, description = "It is changed, or is as it was asked for", body = Processor),
        (status = 201, description = "It is deployed", body = Processor),
        (status = 409, description = "Its state does not fit", body = Document, content_type = "application/problem+json"),
        (status = 422, description = "It cannot be; `field` says where", body = Document,
            content_type = "application/problem+json"),
        (status = "default", description = "What went wrong", body = Document, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn deploy(
    State(gateway): State<Gateway>,
    Caller(context): Caller,
    NamedProcessor(name): NamedProcessor,
    body: SmallBody,
) -> Result<(StatusCode, Json<Processor>), Problem> {
    let wanted = body.parse::<ProcessorSpec<'_>>()?.read()?;
    check_topics(&name, &wanted)?;
    let writer = Writer::new(&gateway, &context);
    let _turn = gateway.changes.deployments.lock().await;
    writer.catch_up(Kept::Modules).await?;
    writer.catch_up(Kept::Deployments).await?;
    let current = gateway.plugins.processor(&name);
    let (status, deployment) = match &current {
        Some(current) => (StatusCode::OK, after(wanted, &current.deployment)),
        None => (StatusCode::CREATED, wanted),
    };
    if current.is_none() && gateway.plugins.processors().len() >= PROCESSORS_MAX {
        let detail = format!("there are {PROCESSORS_MAX} processors, as many as may be");
        return Err(Problem::new(StatusCode::CONFLICT, "too_many_processors", detail));
    }
    let is_first = current.is_none();
    let is_new = current.is_none_or(|current| *current.deployment != deployment);
    if is_new {
        check(&gateway, &name, &deployment).await?;
    }
    prepare_topics(&writer, &name, &deployment, is_first).await?;
    if is_new {
        writer.write_processor(&name, Some(&deployment)).await?;
    }
    Ok((status, Json(Processor::show(&gateway, &name, &deployment))))
}

/// What is wanted, as what follows what is there; the same as that if nothing is changed.
fn after(wanted: Deployment, current: &Deployment) -> Deployment {
    let mut next = Deployment {
        version: current.version,
        paused: current.paused,
        ..wanted
    };
    if next != *current {
        next.version = current.version.saturating_add(1);
    }
    next
}

/// A processor's topics are four, not fewer.
fn check_topics(name: &ProcessorName, wanted: &Deployment) -> Result<(), Problem> {
    for own in [name.dead_letter_topic(), name.changelog_topic()] {
        for (field, topic) in [("input", &wanted.input), ("output", &wanted.output)] {
            if *topic == own {
                let reason = format!("{own} is what the processor {name} keeps for itself");
                return Err(Problem::field(field, reason));
            }
        }
    }
    Ok(())
}

async fn check(gateway: &Gateway, name: &ProcessorName, deployment: &Deployment) -> Result<(), Problem> {
    let module = gateway.plugins.module(&deployment.module).ok_or_else(|| {
        let detail = format!("`module`: there is no module {}", deployment.module);
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "unknown_module", detail).of_field("module")
    })?;
    if !module.world.aggregates() {
        let detail = format!(
            "`module`: a module that aggregates windows is needed, this is a {}",
            module.world
        );
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "wrong_world", detail).of_field("module"));
    }
    check_parameters(&deployment.config, &module.descriptor)?;
    let (plugins, name, deployment) = (gateway.plugins.clone(), name.clone(), deployment.clone());
    Ok(blocking(move || plugins.check(&name, &deployment)).await??)
}

/// List processors
#[utoipa::path(
    get,
    path = "/api/v1/processors",
    tag = "processors",
    operation_id = "list_processors",
    responses(
        (status = 200, description = "Every processor", body = Processors),
        (status = "default", description = "What went wrong", body = Document, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn list(State(gateway): State<Gateway>) -> Json<Processors> {
    let deployed = gateway.plugins.processors();
    let shown = deployed
        .iter()
        .map(|deployed| Processor::show(&gateway, &deployed.name, &deployed.deployment));
    Json(Processors {
        processors: shown.collect(),
    })
}

/// A processor
#[utoipa::path(
    get,
    path = "/api/v1/processors/{name}",
    tag = "processors",
    operation_id = "describe_processor",
    params(("name" = String, Path, description = "The processor's name")),
    responses(
        (status = 200, description = "The processor", body = Processor),
        (status = "default", description = "What went wrong", body = Document, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn describe(
    State(gateway): State<Gateway>,
    NamedProcessor(name): NamedProcessor,
) -> Result<Json<Processor>, Problem> {
    let deployed = find(&gateway, &name)?;
    Ok(Json(Processor::show(&gateway, &name, &deployed.deployment)))
}

/// Delete a processor
///
/// The topic of its state goes with it; its results and dead letters stay.
#[utoipa::path(
    delete,
    path = "/api/v1/processors/{name}",
    tag = "processors",
    operation_id = "delete_processor",
    params(("name" = String, Path, description = "The processor's name"), DeleteParameters),
    responses(
        (status = 204, description = "It is deleted"),
        (status = "default", description = "What went wrong", body = Document, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn delete(
    State(gateway): State<Gateway>,
    Caller(context): Caller,
    NamedProcessor(name): NamedProcessor,
    Parameters(how): Parameters<DeleteParameters>,
) -> Result<StatusCode, Problem> {
    let writer = Writer::new(&gateway, &context);
    let _turn = gateway.changes.deployments.lock().await;
    writer.catch_up(Kept::Deployments).await?;
    find(&gateway, &name)?;
    writer.write_processor(&name, None).await?;
    if !how.keep_state {
        delete_changelog(&writer, &name).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Pause a processor
///
/// It keeps its state and its place in the input.
#[utoipa::path(
    post,
    path = "/api/v1/processors/{name}/pause",
    tag = "processors",
    operation_id = "pause_processor",
    params(("name" = String, Path, description = "The processor's name")),
    request_body(content = Option<serde_json::Value>, description = "Nothing, or `{}`"),
    responses(
        (status = 200, description = "It is paused", body = Processor),
        (status = "default", description = "What went wrong", body = Document, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn pause(
    State(gateway): State<Gateway>,
    Caller(context): Caller,
    NamedProcessor(name): NamedProcessor,
    body: SmallBody,
) -> Result<Json<Processor>, Problem> {
    set_paused(&Writer::new(&gateway, &context), &name, &body, true).await
}

/// Resume a processor
///
/// Also one whose tasks have stopped: they begin again.
#[utoipa::path(
    post,
    path = "/api/v1/processors/{name}/resume",
    tag = "processors",
    operation_id = "resume_processor",
    params(("name" = String, Path, description = "The processor's name")),
    request_body(content = Option<serde_json::Value>, description = "Nothing, or `{}`"),
    responses(
        (status = 200, description = "It is meant to run", body = Processor),
        (status = "default", description = "What went wrong", body = Document, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn resume(
    State(gateway): State<Gateway>,
    Caller(context): Caller,
    NamedProcessor(name): NamedProcessor,
    body: SmallBody,
) -> Result<Json<Processor>, Problem> {
    set_paused(&Writer::new(&gateway, &context), &name, &body, false).await
}

async fn set_paused(
    writer: &Writer<'_>,
    name: &ProcessorName,
    body: &SmallBody,
    paused: bool,
) -> Result<Json<Processor>, Problem> {
    if !body.bytes.is_empty() {
        body.parse::<Nothing>()?;
    }
    let gateway = writer.gateway;
    let _turn = gateway.changes.deployments.lock().await;
    writer.catch_up(Kept::Deployments).await?;
    let current = find(gateway, name)?.deployment;
    let deployment = Deployment {
        paused,
        ..(*current).clone()
    };
    // A stopped task begins again with the record that says so, also if the processor was meant to run all the time.
    if !paused || !current.paused {
        writer.write_processor(name, Some(&deployment)).await?;
    }
    Ok(Json(Processor::show(gateway, name, &deployment)))
}

pub(super) fn find(gateway: &Gateway, name: &ProcessorName) -> Result<Deployed, Problem> {
    gateway.plugins.processor(name).ok_or_else(|| unknown(name))
}

pub(super) fn unknown(name: &ProcessorName) -> Problem {
    let detail = format!("there is no processor {name}");
    Problem::new(StatusCode::NOT_FOUND, "unknown_processor", detail)
}
