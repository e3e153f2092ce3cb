//! A member's session is over: it has sent no heartbeat for its session timeout, or never used the id it was given.

use model::ErrorCode;

use super::Classic;
use super::group::GroupState;
use super::member::MemberId;
use crate::group::records::GroupRecord;

impl Classic<'_> {
    #[must_use]
    pub(in crate::group) fn session_is_over(&mut self, member_id: &MemberId) -> Option<GroupRecord> {
        if self.group.pending_members.contains(member_id) {
            self.remove_member(member_id, ErrorCode::UnknownMemberId);
            return self.complete_if_all_joined();
        }
        let member = self.group.members.get(member_id)?;
        if member.is_excused() {
            // Its session starts anew when it is answered.
            return None;
        }
        self.remove_member(member_id, ErrorCode::UnknownMemberId);
        match self.group.state() {
            GroupState::Stable | GroupState::CompletingRebalance | GroupState::PreparingRebalance => {
                self.rebalance_or_complete()
            }
            GroupState::Empty => None,
        }
    }
}
