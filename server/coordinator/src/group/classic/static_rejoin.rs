//! A static member joins without an id: its process has started anew, and takes the place of the one before (KIP-345).
//!
//! It gets a new member id, and the old one is fenced at once. In a stable group whose protocol stays the same nobody
//! else notices: the new id is stored and answered with the current generation, no rebalance. A leader is told in version
//! 9 that it need not assign again (KIP-814).

use std::collections::BTreeMap;

use model::ErrorCode;
use protocol::Text;
use protocol::messages::join_group_response::JoinGroupResponse;

use super::Classic;
use super::group::GroupState;
use super::join::{self, Join};
use super::member::{Member, MemberId, WaitingJoin};
use super::sync;
use crate::group::error_map::append_error;
use crate::group::records::GroupRecord;
use crate::group::writes::Then;

/// From here on a leader can be told to keep the assignment.
const SKIP_ASSIGNMENT_VERSION: i16 = 9;

/// A new id on its way to the log, and what it replaces.
#[derive(Debug)]
pub(in crate::group) struct StaticRejoin {
    pub(in crate::group) group_id: Text,
    old_id: MemberId,
    old: Member,
    new_id: MemberId,
    join: WaitingJoin,
    /// The leader before, which is what clients below version 9 are told: one that finds itself leader would assign.
    leader: Option<MemberId>,
}

impl Classic<'_> {
    #[must_use]
    pub(super) fn rejoin_static(
        &mut self,
        join: &Join<'_>,
        old_id: &MemberId,
        new_id: MemberId,
    ) -> Option<GroupRecord> {
        let leader = self.group.leader.clone();
        let mut old = self.group.replace_static(old_id, &new_id)?;
        self.timers.cancel(&self.session_key(old_id));
        if let Some(waiting) = old.awaiting_join.take() {
            let fenced = join::refusal(old_id.clone().into(), ErrorCode::FencedInstanceId, waiting.version);
            self.respond(waiting.token, fenced);
        }
        if let Some(token) = old.awaiting_sync.take() {
            self.respond(token, sync::refusal(ErrorCode::FencedInstanceId));
        }
        self.update_member(join, &new_id);
        self.renew_session(&new_id);
        match self.group.state() {
            GroupState::Stable if self.group.select_protocol() == self.group.protocol_name => {
                let then = Then::Rejoin(Box::new(StaticRejoin {
                    group_id: self.group_id.clone(),
                    old_id: old_id.clone(),
                    old,
                    new_id,
                    join: join.waiting,
                    leader,
                }));
                let assignments = self
                    .group
                    .members
                    .iter()
                    .map(|(id, member)| (id.clone(), member.assignment.clone()));
                let record = self
                    .group
                    .record(self.group_id, &assignments.collect::<BTreeMap<_, _>>());
                self.append(record, None, then);
                None
            }
            // The leader may be assigning to the old id at this moment, so it has to begin again.
            GroupState::Stable | GroupState::CompletingRebalance => self.prepare_rebalance(),
            GroupState::PreparingRebalance => self.complete_if_all_joined(),
            // An empty group has no static members to replace.
            GroupState::Empty => None,
        }
    }

    /// The new id is committed. A rebalance that began meanwhile answers the join by itself.
    pub(in crate::group) fn static_rejoin_committed(&mut self, rejoin: &StaticRejoin) {
        if !self.take_waiting(rejoin) {
            return;
        }
        let mut response = join::joined(self.group, &rejoin.new_id, rejoin.join.version);
        if rejoin.join.version >= SKIP_ASSIGNMENT_VERSION {
            response.skip_assignment = self.group.is_leader(&rejoin.new_id);
        } else {
            response.members = Vec::new();
            response.leader = rejoin.leader.clone().map(Text::from).unwrap_or_default();
        }
        self.respond(rejoin.join.token, response);
        self.renew_session(&rejoin.new_id);
    }

    /// The new id could not be stored: the instance has its old one again, unless it has moved on.
    pub(in crate::group) fn static_rejoin_failed(&mut self, rejoin: &StaticRejoin, error: ErrorCode) {
        if self.take_waiting(rejoin) {
            let refusal = join::refusal(Text::new(), append_error(error), rejoin.join.version);
            let response = JoinGroupResponse {
                generation_id: self.group.generation,
                protocol_type: self.group.protocol_type.clone(),
                leader: rejoin.leader.clone().map(Text::from).unwrap_or_default(),
                ..refusal
            };
            self.respond(rejoin.join.token, response);
        }
        if self.group.state() != GroupState::Stable || !self.group.members.contains_key(&rejoin.new_id) {
            return;
        }
        self.timers.cancel(&self.session_key(&rejoin.new_id));
        if self.group.replace_static(&rejoin.new_id, &rejoin.old_id).is_some()
            && let Some(member) = self.group.members.get_mut(&rejoin.old_id)
        {
            member.terms = rejoin.old.terms.clone();
        }
        self.renew_session(&rejoin.old_id);
    }

    /// Whether the join still waits for this write; if so, it no longer does.
    fn take_waiting(&mut self, rejoin: &StaticRejoin) -> bool {
        let Some(member) = self.group.members.get_mut(&rejoin.new_id) else {
            return false;
        };
        if member.awaiting_join != Some(rejoin.join) {
            return false;
        }
        member.awaiting_join = None;
        true
    }
}
