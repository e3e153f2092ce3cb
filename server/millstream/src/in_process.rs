//! The broker's way to a controller in the same process: by its dispatch, without encoding.

use std::net::SocketAddr;
use std::sync::Arc;

use broker::{ControllerChannel, ControllerError, ControllerFuture};
use model::Offset;
use network::{Answer, Dispatch, Principal, RequestContext};
use protocol::{Request, Text};
use quorum::{ControllerDispatch, ControllerHandle};

/// Speaks to the controller as the node's broker.
pub(crate) struct InProcessController {
    pub(crate) controller: Arc<ControllerDispatch>,
    pub(crate) handle: ControllerHandle,
    pub(crate) listener: Arc<str>,
    pub(crate) node_id: i32,
}

impl ControllerChannel for InProcessController {
    fn committed_end(&self) -> Option<Offset> {
        Some(self.handle.image().end_offset)
    }

    fn call(&self, request: Request, version: i16) -> ControllerFuture {
        let context = RequestContext {
            principal: Principal::anonymous(),
            listener: self.listener.clone(),
            client_id: Some(Text::from(self.node_id.to_string())),
            client_address: SocketAddr::from(([127, 0, 0, 1], 0)),
            correlation_id: 0,
            api_version: version,
        };
        let answered = self.controller.clone().dispatch(context, request);
        Box::pin(async move {
            let mut answer = answered.await;
            loop {
                match answer {
                    Answer::Response(response) => return Ok(*response),
                    Answer::Later(later) => answer = later.await,
                    Answer::Nothing | Answer::Close => return Err(ControllerError::Stopped),
                }
            }
        })
    }
}
