//! InitProducerId, versions 0–5: a fresh producer id, epoch 0, for an idempotent producer (KIP-98).
//!
//! Ids come from blocks that the controller hands out, so none is given twice, whatever restarts. A request that names
//! a transactional id is refused: there is no transaction coordinator here.

use std::ops::RangeInclusive;
use std::sync::Arc;

use model::{ErrorCode, ProducerId};
use network::Answer;
use protocol::messages::init_producer_id_request::InitProducerIdRequest;
use protocol::messages::init_producer_id_response::InitProducerIdResponse;

use crate::node::Broker;

pub(crate) const VERSIONS: RangeInclusive<i16> = 0..=5;

pub(crate) async fn handle(broker: &Arc<Broker>, request: &InitProducerIdRequest) -> Answer {
    let drawn = match &request.transactional_id {
        Some(_) => Err(ErrorCode::InvalidRequest),
        None => broker.next_producer_id().await,
    };
    let (code, producer_id, producer_epoch) = match drawn {
        Ok(id) => (ErrorCode::None, id.get(), 0),
        Err(code) => (code, -1, -1),
    };
    debug_assert!(code != ErrorCode::None || ProducerId::from_wire(producer_id).is_some());
    Answer::now(InitProducerIdResponse {
        error_code: code.code(),
        producer_id,
        producer_epoch,
        ..Default::default()
    })
}
