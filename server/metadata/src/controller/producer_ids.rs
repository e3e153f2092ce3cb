//! AllocateProducerIds: blocks of producer ids for brokers to give out (KIP-730).

use model::ErrorCode;
use protocol::internal_records::metadata::ProducerIdsRecord;
use protocol::messages::allocate_producer_ids_request::AllocateProducerIdsRequest;
use protocol::messages::allocate_producer_ids_response::AllocateProducerIdsResponse;

use super::{Controller, Outcome, Refusal};

/// How many ids a block has.
pub const PRODUCER_ID_BLOCK: i32 = 1000;

impl Controller {
    /// # Errors
    /// If the broker is not registered under that epoch, or ids are used up.
    pub fn allocate_producer_ids(
        &self,
        request: &AllocateProducerIdsRequest,
    ) -> Result<Outcome<AllocateProducerIdsResponse>, Refusal> {
        self.registered(request.broker_id, request.broker_epoch)?;
        let start = self.image().next_producer_id.unwrap_or(0);
        let Some(next_producer_id) = start.checked_add(i64::from(PRODUCER_ID_BLOCK)) else {
            let message =
                "Exhausted all producerIds as the next block's end producerId has exceeded the int64 type limit";
            return Err(Refusal::new(ErrorCode::UnknownServerError, message));
        };
        let record = ProducerIdsRecord {
            broker_id: request.broker_id,
            broker_epoch: request.broker_epoch,
            next_producer_id,
            ..ProducerIdsRecord::default()
        };
        Ok(Outcome {
            records: vec![record.into()],
            response: AllocateProducerIdsResponse {
                producer_id_start: start,
                producer_id_len: PRODUCER_ID_BLOCK,
                ..AllocateProducerIdsResponse::default()
            },
        })
    }
}
