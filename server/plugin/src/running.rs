//! What a node's plugins are doing, as those see it who show and change it.
//!
//! Who serves users holds a [`RunningPlugins`] and neither knows where modules are kept nor what a task is. Changes do not
//! go this way: they are records of the topics in [`crate::deployment`], and show here once they have been followed.

use std::sync::Arc;

use model::{BrokerId, Offset, PartitionIndex, Timestamp, TopicName};

use crate::deployment::{Deployment, ProcessorName, TopicPlugins};
use crate::host::{Digest, Module, ModuleError, ModuleInfo};
use crate::logs::Logs;
use crate::measurements::Measurements;

/// What is deployed under one name, and where its record lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deployed {
    pub name: ProcessorName,
    pub deployment: Arc<Deployment>,
    /// When the record was written.
    pub since: Timestamp,
}

/// What a task of a processor is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskPhase {
    /// It reads its state back from the changelog.
    Restoring,
    Running,
    Paused,
    /// Something that may pass keeps it from going on; it tries again by itself.
    BackingOff {
        reason: String,
    },
    /// It goes on only when the processor is deployed or resumed anew.
    Stopped {
        reason: String,
    },
}

/// One partition of a processor, where this node runs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskStatus {
    pub partition: PartitionIndex,
    pub broker: BrokerId,
    /// The next row of the input to read; `None` before the state is restored.
    pub position: Option<Offset>,
    /// The end of the input as the task last saw it.
    pub end_offset: Option<Offset>,
    /// The greatest event time seen; `None` before the first row.
    pub stream_time: Option<Timestamp>,
    /// Rows behind the position.
    pub processed: u64,
    /// How often a window refused a row because it had closed.
    pub late: u64,
    /// Rows without a key.
    pub null_keys: u64,
    /// Rows and results that went to the dead-letter topic.
    pub rejected: u64,
    /// Since the task started.
    pub guest_calls: u64,
    /// Since the task started.
    pub traps: u64,
    pub phase: TaskPhase,
}

/// A row of a processor's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessorStatus {
    pub deployed: Deployed,
    /// By partition.
    pub tasks: Vec<TaskStatus>,
}

/// How far the two topics have been followed: everything below has been taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Followed {
    pub plugins: Offset,
    pub deployments: Offset,
}

/// Why a deployment is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeploymentError {
    #[error("there is no module {0}")]
    UnknownModule(Digest),
    #[error(transparent)]
    Module(#[from] ModuleError),
    /// The name of the field, and what is wrong with it.
    #[error("`{field}`: {reason}")]
    Field { field: &'static str, reason: String },
    /// What is deployed under the name keeps state that the new deployment could not go on from.
    #[error("{0}")]
    OrphansState(String),
}

/// The plugins of this node.
pub trait RunningPlugins: Send + Sync {
    /// How far this node has followed the topics of modules and deployments.
    fn followed(&self) -> Followed;

    /// Whether both topics have been read to their ends since the node started, or are not there. Before that, what does
    /// not show here may be there all the same.
    fn is_caught_up(&self) -> bool;

    /// Every module, by digest.
    fn modules(&self) -> Vec<ModuleInfo>;

    fn module(&self, digest: &Digest) -> Option<ModuleInfo>;

    /// Makes a module ready to run, unless it is. Waits for the disk and may compile, so it belongs on a thread that may
    /// wait.
    ///
    /// # Errors
    /// If there is no such module, or it cannot be run.
    fn load(&self, digest: &Digest) -> Result<Arc<dyn Module>, DeploymentError>;

    /// Whether such a processor could run under this name, next to or after what is deployed there now. Waits as
    /// [`RunningPlugins::load`] does.
    ///
    /// # Errors
    /// If not.
    fn check(&self, name: &ProcessorName, deployment: &Deployment) -> Result<(), DeploymentError>;

    /// Every processor, by name.
    fn processors(&self) -> Vec<Deployed>;

    fn processor(&self, name: &ProcessorName) -> Option<Deployed>;

    fn status(&self, name: &ProcessorName) -> Option<ProcessorStatus>;

    fn logs(&self, name: &ProcessorName) -> Option<Arc<Logs>>;

    fn measurements(&self, name: &ProcessorName) -> Option<Arc<Measurements>>;

    /// The plugins that are bound to a topic.
    fn topic_plugins(&self, topic: &TopicName) -> Option<Arc<TopicPlugins>>;

    /// Whether a key is one that a processor's state has in its changelog.
    fn is_changelog_key(&self, key: &[u8]) -> bool;

    /// What uses a module: processors and topics, in words.
    fn users(&self, digest: &Digest) -> Vec<String>;
}
