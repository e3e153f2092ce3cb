//! JoinGroup, versions 0–9: a member asks to be in the next generation, and waits until that begins.
//!
//! Version notes:
//! - 0 has no rebalance timeout: the session timeout counts.
//! - From 4 on a member without an id is given one and has to come back with it (KIP-394), so that a client that lost the
//!   answer leaves no member behind.
//! - 5 brings static members (KIP-345), 7 the protocol type in the answer and a protocol name that may be null.
//! - In 9 the leader can be told that the assignment stands (KIP-814, in [`super::static_rejoin`]).

use model::ErrorCode;
use protocol::Text;
use protocol::messages::join_group_request::JoinGroupRequest;
use protocol::messages::join_group_response::JoinGroupResponse;

use super::Classic;
use super::group::{ClassicGroup, GroupState};
use super::member::{Member, MemberId, OfferedProtocol, Terms, WaitingJoin, client_host};
use crate::group::config::{
    GroupConfig, MEMBER_ID_PREFIX_BYTES_MAX, MEMBER_PROTOCOLS_BYTES_MAX, MEMBER_PROTOCOLS_MAX, NEW_MEMBER_JOIN_TIMEOUT,
    PENDING_MEMBERS_MAX,
};
use crate::group::records::GroupRecord;
use crate::group::request::GroupCall;
use crate::group::shard::TimerKey;
use crate::shard::Token;

/// From here on a member has to know its id before it is in the group.
const KNOWN_MEMBER_ID_VERSION: i16 = 4;

/// A join with what the caller's connection tells of it.
pub(in crate::group) struct Join<'a> {
    pub(super) request: &'a JoinGroupRequest,
    pub(super) call: &'a GroupCall<'a>,
    pub(super) waiting: WaitingJoin,
}

impl<'a> Join<'a> {
    pub(in crate::group) fn new(request: &'a JoinGroupRequest, call: &'a GroupCall<'a>, token: Token) -> Self {
        let waiting = WaitingJoin {
            token,
            version: call.version,
        };
        Join { request, call, waiting }
    }

    /// What can be said without looking at the group.
    pub(in crate::group) fn check(&self, config: &GroupConfig) -> Result<(), ErrorCode> {
        if self.request.group_id.is_empty() {
            return Err(ErrorCode::InvalidGroupId);
        }
        let session = u64::try_from(self.request.session_timeout_ms)
            .ok()
            .map(std::time::Duration::from_millis);
        if !session.is_some_and(|session| (config.session_timeout_min..=config.session_timeout_max).contains(&session))
        {
            return Err(ErrorCode::InvalidSessionTimeout);
        }
        let protocols = &self.request.protocols;
        let bytes: usize = protocols
            .iter()
            .map(|protocol| protocol.name.len() + protocol.metadata.len())
            .sum();
        let too_much = bytes > MEMBER_PROTOCOLS_BYTES_MAX || protocols.len() > MEMBER_PROTOCOLS_MAX;
        if too_much || self.member_id_prefix().len() > MEMBER_ID_PREFIX_BYTES_MAX {
            return Err(ErrorCode::InvalidRequest);
        }
        Ok(())
    }

    pub(in crate::group) fn refusal(&self, error: ErrorCode) -> JoinGroupResponse {
        refusal(self.request.member_id.clone(), error, self.call.version)
    }

    pub(in crate::group) fn has_member_id(&self) -> bool {
        !self.request.member_id.is_empty()
    }

    /// A member id for whoever has none.
    pub(super) fn new_member_id(&self) -> MemberId {
        MemberId::generate(self.member_id_prefix(), self.call.entropy)
    }

    fn member_id_prefix(&self) -> &str {
        self.request.group_instance_id.as_deref().unwrap_or(self.call.client_id)
    }

    pub(super) fn terms(&self) -> Terms {
        let rebalance_timeout_ms = match self.call.version {
            0 => self.request.session_timeout_ms,
            _ => self.request.rebalance_timeout_ms,
        };
        Terms {
            rebalance_timeout_ms,
            session_timeout_ms: self.request.session_timeout_ms,
            protocols: OfferedProtocol::from_wire(&self.request.protocols),
        }
    }
}

/// The answer to a join that fails.
pub(super) fn refusal(member_id: Text, error: ErrorCode, version: i16) -> JoinGroupResponse {
    JoinGroupResponse {
        error_code: error.code(),
        member_id,
        protocol_name: (version < 7).then(Text::new),
        ..JoinGroupResponse::default()
    }
}

/// The answer that tells a member of the current generation, and the leader of the other members.
pub(super) fn joined(group: &ClassicGroup, member_id: &MemberId, version: i16) -> JoinGroupResponse {
    JoinGroupResponse {
        generation_id: group.generation,
        protocol_type: group.protocol_type.clone(),
        protocol_name: match (&group.protocol_name, version) {
            (None, ..7) => Some(Text::new()),
            (name, _) => name.clone(),
        },
        leader: group.leader.clone().map(Text::from).unwrap_or_default(),
        member_id: member_id.clone().into(),
        members: match group.is_leader(member_id) {
            true => group.members_for_leader(),
            false => Vec::new(),
        },
        ..JoinGroupResponse::default()
    }
}

impl Classic<'_> {
    /// The answer comes at once, or when the rebalance that the join takes part in has ended.
    #[must_use]
    pub(in crate::group) fn join(&mut self, join: &Join<'_>) -> Option<GroupRecord> {
        let member_id = MemberId::from(join.request.member_id.clone());
        if !self.has_room_for(&member_id) {
            self.remove_member(&member_id, ErrorCode::GroupMaxSizeReached);
            let refusal = refusal(Text::new(), ErrorCode::GroupMaxSizeReached, join.call.version);
            self.respond(join.waiting.token, refusal);
            return None;
        }
        if !self
            .group
            .supports(&join.request.protocol_type, &join.request.protocols)
        {
            self.respond(join.waiting.token, join.refusal(ErrorCode::InconsistentGroupProtocol));
            return None;
        }
        match join.has_member_id() {
            false => self.join_without_id(join),
            true => self.join_with_id(join, member_id),
        }
    }

    /// A member that is in the rebalance or the generation already is always welcome.
    fn has_room_for(&self, member_id: &MemberId) -> bool {
        let member = self.group.members.get(member_id);
        match self.group.state() {
            GroupState::Empty => true,
            GroupState::PreparingRebalance => {
                member.is_some_and(|member| member.awaiting_join.is_some())
                    || self.group.awaiting_join() < self.config.group_size_max
            }
            GroupState::CompletingRebalance | GroupState::Stable => {
                member.is_some() || self.group.members.len() < self.config.group_size_max
            }
        }
    }

    fn join_without_id(&mut self, join: &Join<'_>) -> Option<GroupRecord> {
        let new_id = join.new_member_id();
        if let Some(instance_id) = &join.request.group_instance_id {
            return match self.group.static_members.get(instance_id).cloned() {
                Some(old_id) => self.rejoin_static(join, &old_id, new_id),
                None => self.add_member(join, new_id),
            };
        }
        if join.call.version < KNOWN_MEMBER_ID_VERSION {
            return self.add_member(join, new_id);
        }
        let error = match self.group.pending_members.len() < PENDING_MEMBERS_MAX {
            true => ErrorCode::MemberIdRequired,
            false => ErrorCode::GroupMaxSizeReached,
        };
        let mut answered_id = Text::new();
        if error == ErrorCode::MemberIdRequired {
            self.group.pending_members.insert(new_id.clone());
            let wait = std::time::Duration::from_millis(u64::try_from(join.request.session_timeout_ms).unwrap_or(0));
            self.set_timer(self.session_key(&new_id), wait);
            answered_id = new_id.into();
        }
        self.respond(join.waiting.token, refusal(answered_id, error, join.call.version));
        None
    }

    fn join_with_id(&mut self, join: &Join<'_>, member_id: MemberId) -> Option<GroupRecord> {
        let instance_id = join.request.group_instance_id.as_ref();
        if self.group.pending_members.contains(&member_id) {
            // An id is only handed out to dynamic members.
            if instance_id.is_some() {
                self.respond(join.waiting.token, join.refusal(ErrorCode::UnknownMemberId));
                return None;
            }
            return self.add_member(join, member_id);
        }
        if let Err(error) = self.group.check_member(&join.request.member_id, instance_id) {
            self.respond(join.waiting.token, join.refusal(error));
            return None;
        }
        let member = self.group.members.get(&member_id)?;
        let unchanged = OfferedProtocol::are(&member.terms.protocols, &join.request.protocols);
        let known = match self.group.state() {
            GroupState::PreparingRebalance => false,
            // The answer may have been lost: it is given again.
            GroupState::CompletingRebalance => unchanged,
            // The leader joins again when what it assigns has changed, such as the number of partitions.
            GroupState::Stable => unchanged && !self.group.is_leader(&member_id),
            GroupState::Empty => {
                self.respond(join.waiting.token, join.refusal(ErrorCode::UnknownMemberId));
                return None;
            }
        };
        if known {
            let response = joined(self.group, &member_id, join.call.version);
            self.respond(join.waiting.token, response);
            return None;
        }
        self.update_member(join, &member_id);
        self.rebalance_or_complete()
    }

    fn add_member(&mut self, join: &Join<'_>, member_id: MemberId) -> Option<GroupRecord> {
        let first = self.group.previous_state() == GroupState::Empty;
        if self.group.state() == GroupState::PreparingRebalance && first {
            self.group.new_member_added = true;
        }
        let member = Member {
            group_instance_id: join.request.group_instance_id.clone(),
            client_id: join.call.client_id.into(),
            client_host: client_host(join.call.client_address),
            terms: join.terms(),
            assignment: bytes::Bytes::new(),
            awaiting_join: Some(join.waiting),
            awaiting_sync: None,
            is_new: true,
        };
        self.group.add(member_id.clone(), member, &join.request.protocol_type);
        self.set_timer(self.session_key(&member_id), NEW_MEMBER_JOIN_TIMEOUT);
        self.rebalance_or_complete()
    }

    /// The member joins again, with other terms or for another generation. A join that it still waits with is given up by
    /// its client.
    pub(super) fn update_member(&mut self, join: &Join<'_>, member_id: &MemberId) {
        if let Some(before) = self.group.update(member_id, join.terms(), join.waiting) {
            let refusal = refusal(member_id.clone().into(), ErrorCode::RebalanceInProgress, before.version);
            self.respond(before.token, refusal);
        }
    }

    /// Gives up a group that a failed write leaves without a trace in the log.
    pub(in crate::group) fn dissolve(&mut self, error: ErrorCode) {
        for id in std::mem::take(&mut self.group.pending_members) {
            self.timers.cancel(&self.session_key(&id));
        }
        let ids: Vec<MemberId> = self.group.members.keys().cloned().collect();
        for id in ids {
            self.remove_member(&id, error);
        }
        self.timers.cancel(&TimerKey::Join(self.group_id.clone()));
        self.timers.cancel(&TimerKey::Sync(self.group_id.clone()));
    }
}
