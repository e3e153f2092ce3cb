//! Producer ids, drawn from a block that the controller has given to this broker (KIP-730).

use model::{ErrorCode, ProducerId};
use protocol::messages::allocate_producer_ids_request::AllocateProducerIdsRequest;
use protocol::{Request, Response};
use tokio::sync::Mutex;
use tracing::warn;

use crate::controller_client::ControllerClient;

/// What is left of the present block.
#[derive(Default)]
pub(crate) struct ProducerIds {
    block: Mutex<Block>,
}

#[derive(Default)]
struct Block {
    next: i64,
    left: i32,
}

impl ProducerIds {
    /// The next id; fetches a block where the present one is used up, and lets other callers wait meanwhile.
    pub(crate) async fn next(
        &self,
        controller: &ControllerClient,
        broker_id: i32,
        broker_epoch: i64,
    ) -> Result<ProducerId, ErrorCode> {
        let mut block = self.block.lock().await;
        if block.left == 0 {
            *block = fetch(controller, broker_id, broker_epoch).await?;
        }
        let id = ProducerId::from_wire(block.next).ok_or(ErrorCode::UnknownServerError)?;
        block.next += 1;
        block.left -= 1;
        Ok(id)
    }
}

async fn fetch(controller: &ControllerClient, broker_id: i32, broker_epoch: i64) -> Result<Block, ErrorCode> {
    let request = AllocateProducerIdsRequest {
        broker_id,
        broker_epoch,
        ..Default::default()
    };
    let response = match controller.call(Request::from(request)).await {
        Ok(Response::AllocateProducerIds(response)) => response,
        Ok(_) => return Err(ErrorCode::UnknownServerError),
        Err(error) => {
            warn!(%error, "no block of producer ids from the controller");
            return Err(ErrorCode::CoordinatorLoadInProgress);
        }
    };
    match ErrorCode::from_code(response.error_code) {
        Some(ErrorCode::None) if response.producer_id_len > 0 => Ok(Block {
            next: response.producer_id_start,
            left: response.producer_id_len,
        }),
        code => {
            warn!(?code, "the controller gave no block of producer ids");
            Err(ErrorCode::CoordinatorLoadInProgress)
        }
    }
}
