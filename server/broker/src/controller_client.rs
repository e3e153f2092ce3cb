//! The way to the active controller.
//!
//! Broker and quorum do not know each other: the binary hands in whatever reaches the controller, in process where this
//! node has both roles.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use model::Offset;
use protocol::{Request, Response};

/// Why the controller has not answered.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ControllerError {
    #[error("the controller is not active")]
    NotActive,
    #[error("the controller did not answer in time")]
    Timeout,
    #[error("the controller is shutting down")]
    Stopped,
}

pub type ControllerFuture = Pin<Box<dyn Future<Output = Result<Response, ControllerError>> + Send>>;

/// Reaches the active controller with a request of the given version.
pub trait ControllerChannel: Send + Sync + 'static {
    fn call(&self, request: Request, version: i16) -> ControllerFuture;

    /// Where the committed metadata log ends as far as the controller has told: what it has answered lies below. `None`
    /// where that is not known here.
    fn committed_end(&self) -> Option<Offset>;
}

/// The broker's handle on its controller; cheap to clone.
#[derive(Clone)]
pub struct ControllerClient(Arc<dyn ControllerChannel>);

impl ControllerClient {
    #[must_use]
    pub fn new(channel: Arc<dyn ControllerChannel>) -> Self {
        ControllerClient(channel)
    }

    /// This broker's own request, in the latest version.
    pub(crate) async fn call(&self, request: Request) -> Result<Response, ControllerError> {
        let version = *request.api_key().stable_versions().end();
        self.0.call(request, version).await
    }

    /// As [`ControllerChannel::committed_end`].
    pub(crate) fn committed_end(&self) -> Option<Offset> {
        self.0.committed_end()
    }

    /// A client's request, in the client's version.
    pub(crate) async fn forward(&self, request: Request, version: i16) -> Result<Response, ControllerError> {
        self.0.call(request, version).await
    }
}
