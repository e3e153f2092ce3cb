//! The way to the controller from within its process: for the broker of a combined node, and for the listener.

use std::sync::Arc;

use metadata::Image;
use model::BrokerId;
use protocol::{Request, Response};
use raft::SnapshotId;
use tokio::sync::{mpsc, oneshot};

use crate::errors::stopping;
use crate::image_publisher::{ImageStream, Publisher};

/// Why there is no response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ControllerError {
    #[error("the controller does not serve this API")]
    NotServed,
    #[error("the controller has stopped")]
    Stopped,
}

/// What the driver is asked for.
pub(crate) enum Command {
    Call {
        request: Box<Request>,
        version: i16,
        answer: oneshot::Sender<Result<Response, ControllerError>>,
    },
    Snapshot {
        answer: oneshot::Sender<Option<SnapshotId>>,
    },
    Stop,
}

/// A controller in this process. Cheap to clone; calls from all clones are committed together.
#[derive(Clone)]
pub struct ControllerHandle {
    pub(crate) commands: mpsc::Sender<Command>,
    pub(crate) publisher: Publisher,
    pub(crate) node_id: BrokerId,
    pub(crate) cluster_id: Arc<str>,
    pub(crate) kraft_version: i16,
}

impl ControllerHandle {
    /// Has the request decided. The response comes when what it says is on the disk of a majority; a refusal is in the
    /// response's error codes.
    ///
    /// # Errors
    /// If the controller has no such operation, or stops before it is committed: then it may or may not be.
    pub async fn call(&self, request: impl Into<Request>, version: i16) -> Result<Response, ControllerError> {
        let (answer, response) = oneshot::channel();
        let command = Command::Call {
            request: Box::new(request.into()),
            version,
            answer,
        };
        self.commands
            .send(command)
            .await
            .map_err(|_| ControllerError::Stopped)?;
        response.await.map_err(|_| ControllerError::Stopped)?
    }

    /// Everything that is committed, first all at once, then change by change.
    #[must_use]
    pub fn subscribe(&self) -> ImageStream {
        self.publisher.subscribe()
    }

    /// The latest committed image.
    #[must_use]
    pub fn image(&self) -> Arc<Image> {
        self.publisher.latest()
    }

    /// The first committed image, from now on, that satisfies `condition`; `None` if the controller stops before.
    pub async fn image_when(&self, mut condition: impl FnMut(&Image) -> bool) -> Option<Arc<Image>> {
        self.publisher.wait_for(|image| condition(image)).await
    }

    /// Writes a snapshot now. `None` if nothing is committed beyond the newest, or the disk fails.
    pub async fn snapshot(&self) -> Option<SnapshotId> {
        let (answer, written) = oneshot::channel();
        self.commands.send(Command::Snapshot { answer }).await.ok()?;
        written.await.ok()?
    }

    #[must_use]
    pub fn node_id(&self) -> BrokerId {
        self.node_id
    }

    /// The finalized level of `kraft.version`, which is in no image.
    #[must_use]
    pub fn kraft_version(&self) -> i16 {
        self.kraft_version
    }

    #[must_use]
    pub fn cluster_id(&self) -> &str {
        &self.cluster_id
    }

    /// The response to one who asks a controller that is about to stop.
    pub(crate) fn refused_by_stopping(request: &Request) -> Option<Response> {
        crate::errors::refused(request, &stopping())
    }
}
