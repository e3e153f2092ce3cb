//! SyncGroup, versions 0–5: the leader brings the assignments, every member fetches its own.
//!
//! The leader's assignments are appended with the generation as one record; members wait until it is committed. From
//! version 5 on the request names protocol type and protocol, which must be the group's (KIP-559).

use std::collections::BTreeMap;

use bytes::Bytes;
use model::ErrorCode;
use protocol::Text;
use protocol::messages::sync_group_request::SyncGroupRequest;
use protocol::messages::sync_group_response::SyncGroupResponse;

use super::Classic;
use super::group::GroupState;
use super::member::MemberId;
use crate::group::error_map::append_error;
use crate::group::records::GroupRecord;
use crate::group::shard::TimerKey;
use crate::group::writes::Then;
use crate::shard::{Token, WriteId};

/// From here on the request has to name the protocol type and the protocol.
const NAMED_PROTOCOL_VERSION: i16 = 5;

/// The answer to a sync that fails.
pub(in crate::group) fn refusal(error: ErrorCode) -> SyncGroupResponse {
    SyncGroupResponse {
        error_code: error.code(),
        ..SyncGroupResponse::default()
    }
}

/// What can be said without looking at the group.
pub(in crate::group) fn check(request: &SyncGroupRequest, version: i16) -> Result<(), ErrorCode> {
    if version >= NAMED_PROTOCOL_VERSION && (request.protocol_type.is_none() || request.protocol_name.is_none()) {
        return Err(ErrorCode::InconsistentGroupProtocol);
    }
    if request.group_id.is_empty() {
        return Err(ErrorCode::InvalidGroupId);
    }
    Ok(())
}

impl Classic<'_> {
    /// The answer comes at once in a stable group, else when the leader's assignments are committed.
    pub(in crate::group) fn sync(&mut self, request: &SyncGroupRequest, token: Token) {
        let member_id = match self.check_sync(request) {
            Ok(member_id) => member_id,
            Err(error) => return self.respond(token, refusal(error)),
        };
        match self.group.state() {
            GroupState::Empty => self.respond(token, refusal(ErrorCode::UnknownMemberId)),
            GroupState::PreparingRebalance => self.respond(token, refusal(ErrorCode::RebalanceInProgress)),
            GroupState::Stable => {
                self.has_synced(&member_id);
                let response = self.assignment_of(&member_id);
                self.respond(token, response);
            }
            GroupState::CompletingRebalance => {
                self.has_synced(&member_id);
                self.await_assignment(&member_id, token);
                if self.group.is_leader(&member_id) && self.group.assignment_in_flight.is_none() {
                    self.store_assignments(request);
                }
            }
        }
    }

    fn check_sync(&self, request: &SyncGroupRequest) -> Result<MemberId, ErrorCode> {
        let differs = |given: &Option<Text>, own: &Option<Text>| given.is_some() && own.is_some() && given != own;
        let member_id = self
            .group
            .check_member(&request.member_id, request.group_instance_id.as_ref())?;
        if request.generation_id != self.group.generation {
            return Err(ErrorCode::IllegalGeneration);
        }
        if differs(&request.protocol_type, &self.group.protocol_type)
            || differs(&request.protocol_name, &self.group.protocol_name)
        {
            return Err(ErrorCode::InconsistentGroupProtocol);
        }
        Ok(member_id)
    }

    fn has_synced(&mut self, member_id: &MemberId) {
        self.group.pending_sync.remove(member_id);
        if self.group.pending_sync.is_empty() {
            self.timers.cancel(&TimerKey::Sync(self.group_id.clone()));
        }
    }

    /// A sync that the member still waits with is given up by its client, and told to try again.
    fn await_assignment(&mut self, member_id: &MemberId, token: Token) {
        let member = self.group.members.get_mut(member_id);
        if let Some(before) = member.and_then(|member| member.awaiting_sync.replace(token)) {
            self.respond(before, refusal(ErrorCode::RebalanceInProgress));
        }
    }

    fn store_assignments(&mut self, request: &SyncGroupRequest) {
        let given = request.assignments.iter().filter_map(|given| {
            let (id, _) = self.group.members.get_key_value(&*given.member_id)?;
            Some((id.clone(), Bytes::copy_from_slice(&given.assignment)))
        });
        let assignments: BTreeMap<MemberId, Bytes> = given.collect();
        let record = self.group.record(self.group_id, &assignments);
        let group_id = self.group_id.clone();
        let write = self.append(record, None, Then::Assign { group_id, assignments });
        self.group.assignment_in_flight = Some(write);
    }

    fn assignment_of(&self, member_id: &MemberId) -> SyncGroupResponse {
        SyncGroupResponse {
            protocol_type: self.group.protocol_type.clone(),
            protocol_name: self.group.protocol_name.clone(),
            assignment: self
                .group
                .members
                .get(member_id)
                .map(|member| member.assignment.clone())
                .unwrap_or_default(),
            ..SyncGroupResponse::default()
        }
    }

    /// Whether the generation that an assignment was for is still the one that waits for it; if so, it no longer does.
    fn take_assignment(&mut self, write: WriteId) -> bool {
        let waits =
            self.group.state() == GroupState::CompletingRebalance && self.group.assignment_in_flight == Some(write);
        if waits {
            self.group.assignment_in_flight = None;
        }
        waits
    }

    pub(in crate::group) fn assignment_committed(&mut self, write: WriteId, assignments: &BTreeMap<MemberId, Bytes>) {
        if !self.take_assignment(write) {
            return;
        }
        for (id, member) in &mut self.group.members {
            member.assignment = assignments.get(id).cloned().unwrap_or_default();
        }
        self.group.transition(GroupState::Stable, self.now.wall);
        for (id, token) in self.take_waiting_syncs() {
            let response = self.assignment_of(&id);
            self.respond(token, response);
        }
    }

    #[must_use]
    pub(in crate::group) fn assignment_failed(&mut self, write: WriteId, error: ErrorCode) -> Option<GroupRecord> {
        if !self.take_assignment(write) {
            return None;
        }
        self.reset_assignments(append_error(error));
        self.rebalance_or_complete()
    }

    /// No assignment holds any more; who waits for one is told `error`.
    pub(super) fn reset_assignments(&mut self, error: ErrorCode) {
        for member in self.group.members.values_mut() {
            member.assignment = Bytes::new();
        }
        for (_, token) in self.take_waiting_syncs() {
            self.respond(token, refusal(error));
        }
    }

    /// While a member waited its session could not end; now it starts anew.
    fn take_waiting_syncs(&mut self) -> Vec<(MemberId, Token)> {
        let members = self.group.members.iter_mut();
        let waiting = members.filter_map(|(id, member)| Some((id.clone(), member.awaiting_sync.take()?)));
        let waiting: Vec<_> = waiting.collect();
        for (id, _) in &waiting {
            self.renew_session(id);
        }
        waiting
    }
}
