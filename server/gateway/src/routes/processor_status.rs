//! `GET /api/v1/processors/{name}/status`: what the tasks of a processor are doing on this node.

use axum::Json;
use axum::extract::State;
use plugin::Deployment;
use plugin::running::{TaskPhase, TaskStatus};
use serde::Serialize;
use utoipa::ToSchema;

use super::parameters::NamedProcessor;
use super::processors::unknown;
use crate::gateway::Gateway;
use crate::problem::{Document, Problem};

/// How a processor is doing on this node.
#[derive(Serialize, ToSchema)]
pub(crate) struct ProcessorStatus {
    state: ProcessorState,
    #[schema(minimum = 1)]
    version: u64,
    /// By partition of the input.
    tasks: Vec<ProcessorTask>,
}

/// Whether it is meant to run; `failed`: some task has stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ProcessorState {
    Running,
    Paused,
    Failed,
}

impl ProcessorState {
    pub(crate) fn of<'a>(deployment: &Deployment, tasks: impl IntoIterator<Item = &'a TaskStatus>) -> Self {
        let mut phases = tasks.into_iter().map(|task| &task.phase);
        if phases.any(|phase| matches!(phase, TaskPhase::Stopped { .. })) {
            ProcessorState::Failed
        } else if deployment.paused {
            ProcessorState::Paused
        } else {
            ProcessorState::Running
        }
    }
}

/// A partition of a processor.
#[derive(Serialize, ToSchema)]
pub(crate) struct ProcessorTask {
    partition: i32,
    /// Where it runs.
    broker: i32,
    /// The next offset of the input to read; null before the state is restored.
    #[schema(required)]
    position: Option<i64>,
    /// The end of the input as the task last saw it.
    #[schema(required)]
    end_offset: Option<i64>,
    /// How far the position is behind the end.
    #[schema(required)]
    lag: Option<i64>,
    /// The greatest event time seen, in milliseconds since 1970; null before the first row.
    #[schema(required)]
    stream_time: Option<i64>,
    /// How often a window refused a row because it had closed.
    late: u64,
    /// Rows and results that went to the dead letters.
    rejected: u64,
    state: TaskState,
    /// Why it backs off, or has stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Rows behind the position.
    processed: u64,
    /// Rows without a key.
    null_keys: u64,
    /// Calls into the module since the task started.
    guest_calls: u64,
    /// Calls that broke off since the task started.
    traps: u64,
}

/// `backing_off`: it tries again by itself; `stopped`: it goes on when the processor is deployed or resumed anew.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TaskState {
    Restoring,
    Running,
    Paused,
    BackingOff,
    Stopped,
}

impl TaskState {
    pub(crate) const fn of(phase: &TaskPhase) -> Self {
        match phase {
            TaskPhase::Restoring => TaskState::Restoring,
            TaskPhase::Running => TaskState::Running,
            TaskPhase::Paused => TaskState::Paused,
            TaskPhase::BackingOff { .. } => TaskState::BackingOff,
            TaskPhase::Stopped { .. } => TaskState::Stopped,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            TaskState::Restoring => "restoring",
            TaskState::Running => "running",
            TaskState::Paused => "paused",
            TaskState::BackingOff => "backing_off",
            TaskState::Stopped => "stopped",
        }
    }
}

impl ProcessorTask {
    fn show(task: &TaskStatus) -> Self {
        let reason = match &task.phase {
            TaskPhase::BackingOff { reason } | TaskPhase::Stopped { reason } => Some(reason.clone()),
            _ => None,
        };
        ProcessorTask {
            partition: task.partition.get(),
            broker: task.broker.get(),
            position: task.position.map(|offset| offset.get()),
            end_offset: task.end_offset.map(|offset| offset.get()),
            lag: lag(task),
            stream_time: task.stream_time.map(|time| time.millis()),
            late: task.late,
            rejected: task.rejected,
            state: TaskState::of(&task.phase),
            reason,
            processed: task.processed,
            null_keys: task.null_keys,
            guest_calls: task.guest_calls,
            traps: task.traps,
        }
    }
}

/// How many offsets of the input lie before the task; never below zero, for the end may be an old one.
pub(crate) fn lag(task: &TaskStatus) -> Option<i64> {
    Some(task.end_offset?.since(task.position?).max(0))
}

/// What the tasks of a processor are doing
///
/// Those of the node that is asked.
#[utoipa::path(
    get,
    path = "/api/v1/processors/{name}/status",
    tag = "processors",
    operation_id = "processor_status",
    params(("name" = String, Path, description = "The processor's name")),
    responses(
        (status = 200, description = "What they are doing now", body = ProcessorStatus),
        (status = "default", description = "What went wrong", body = Document, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn status(
    State(gateway): State<Gateway>,
    NamedProcessor(name): NamedProcessor,
) -> Result<Json<ProcessorStatus>, Problem> {
    let status = gateway.plugins.status(&name).ok_or_else(|| unknown(&name))?;
    let tasks: Vec<ProcessorTask> = status.tasks.iter().map(ProcessorTask::show).collect();
    Ok(Json(ProcessorStatus {
        state: ProcessorState::of(&status.deployed.deployment, &status.tasks),
        version: status.deployed.deployment.version,
        tasks,
    }))
}
