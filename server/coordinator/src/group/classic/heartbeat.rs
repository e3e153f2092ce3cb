//! Heartbeat, versions 0–4: a member is alive, and learns that it has to join again.

use model::ErrorCode;
use protocol::messages::heartbeat_request::HeartbeatRequest;

use super::Classic;
use super::group::GroupState;

impl Classic<'_> {
    /// # Errors
    /// What the member is told; REBALANCE_IN_PROGRESS counts as a sign of life.
    pub(in crate::group) fn heartbeat(&mut self, request: &HeartbeatRequest) -> Result<(), ErrorCode> {
        let member_id = self
            .group
            .check_member(&request.member_id, request.group_instance_id.as_ref())?;
        if request.generation_id != self.group.generation {
            return Err(ErrorCode::IllegalGeneration);
        }
        if self.group.state() == GroupState::Empty {
            return Err(ErrorCode::UnknownMemberId);
        }
        self.renew_session(&member_id);
        // A member may begin to send heartbeats as soon as it has joined, before it knows its assignment.
        match self.group.state() {
            GroupState::PreparingRebalance => Err(ErrorCode::RebalanceInProgress),
            _ => Ok(()),
        }
    }
}
