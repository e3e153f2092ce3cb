//! What a client of a coordinator is told when the coordinator's own append fails.

use model::ErrorCode;

/// The partition's errors concern the coordinator's broker, not the client's topics: what a retry may cure becomes
/// COORDINATOR_NOT_AVAILABLE, what a search for the new coordinator may cure becomes NOT_COORDINATOR.
pub(super) fn append_error(error: ErrorCode) -> ErrorCode {
    match error {
        ErrorCode::UnknownTopicOrPartition
        | ErrorCode::NotEnoughReplicas
        | ErrorCode::NotEnoughReplicasAfterAppend
        | ErrorCode::RequestTimedOut => ErrorCode::CoordinatorNotAvailable,
        ErrorCode::NotLeaderOrFollower | ErrorCode::KafkaStorageError => ErrorCode::NotCoordinator,
        ErrorCode::MessageTooLarge | ErrorCode::RecordListTooLarge | ErrorCode::InvalidFetchSize => {
            ErrorCode::UnknownServerError
        }
        other => other,
    }
}
