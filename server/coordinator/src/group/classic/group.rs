//! A classic group's state, and the changes of it that need neither clock nor log.
//!
//! Invariants:
//! - A group with members has a protocol type and a leader, and the leader is a member.
//! - A member id is either pending or a member, never both; every static instance names a member.
//! - Outside Preparing and Completing no member waits for a rebalance, but for a static one whose new id is being
//!   stored.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use model::{ErrorCode, Timestamp};
use protocol::messages::consumer_protocol_subscription::ConsumerProtocolSubscription;
use protocol::messages::join_group_request::JoinGroupRequestProtocol;
use protocol::messages::join_group_response::JoinGroupResponseMember;
use protocol::{Message, Reader, Text};

use super::member::{Member, MemberId, OfferedProtocol, Terms, WaitingJoin};
use crate::group::records::{GroupRecord, GroupSnapshot, MemberSnapshot};
use crate::shard::WriteId;

/// The protocol type of consumers, whose subscriptions the coordinator can read.
const CONSUMER_PROTOCOL: &str = "consumer";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupState {
    Empty,
    PreparingRebalance,
    CompletingRebalance,
    Stable,
}

impl GroupState {
    /// The name of the state of a group that does not exist.
    pub(crate) const DEAD: &'static str = "Dead";

    pub(crate) fn name(self) -> &'static str {
        match self {
            GroupState::Empty => "Empty",
            GroupState::PreparingRebalance => "PreparingRebalance",
            GroupState::CompletingRebalance => "CompletingRebalance",
            GroupState::Stable => "Stable",
        }
    }
}

impl fmt::Display for GroupState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The first rebalance of a group waits for more members; how long this time, and how long at most after it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InitialDelay {
    pub(crate) wait: Duration,
    pub(crate) remaining: Duration,
}

#[derive(Clone, Debug)]
pub(crate) struct ClassicGroup {
    state: GroupState,
    previous_state: GroupState,
    state_since: Option<Timestamp>,
    pub(crate) generation: i32,
    /// Kept when the last member has left: it tells a group of consumers from one that was only committed to.
    pub(crate) protocol_type: Option<Text>,
    pub(crate) protocol_name: Option<Text>,
    pub(crate) leader: Option<MemberId>,
    pub(crate) members: BTreeMap<MemberId, Member>,
    pub(crate) static_members: BTreeMap<Text, MemberId>,
    /// Member ids that were handed out and not come back with a join yet.
    pub(crate) pending_members: BTreeSet<MemberId>,
    /// Members that know of the generation and have not asked for their assignment.
    pub(crate) pending_sync: BTreeSet<MemberId>,
    pub(crate) initial_delay: Option<InitialDelay>,
    /// A member has joined since the initial delay began, so it may be worth waiting for one more.
    pub(crate) new_member_added: bool,
    /// The write that takes the leader's assignment for this generation to the log.
    pub(crate) assignment_in_flight: Option<WriteId>,
    /// `None` if the members are no consumers, or speak a dialect that cannot be read.
    subscribed_topics: Option<BTreeSet<Text>>,
    /// The write of the group's first record, until it is committed: before that, nobody is told that the group exists.
    pub(crate) creation: Option<WriteId>,
}

impl ClassicGroup {
    pub(crate) fn new(state_since: Option<Timestamp>) -> Self {
        ClassicGroup {
            state: GroupState::Empty,
            previous_state: GroupState::Empty,
            state_since,
            generation: 0,
            protocol_type: None,
            protocol_name: None,
            leader: None,
            members: BTreeMap::new(),
            static_members: BTreeMap::new(),
            pending_members: BTreeSet::new(),
            pending_sync: BTreeSet::new(),
            initial_delay: None,
            new_member_added: false,
            assignment_in_flight: None,
            subscribed_topics: None,
            creation: None,
        }
    }

    /// A group that exists because somebody has committed offsets to it.
    pub(crate) fn committed_to() -> Self {
        ClassicGroup::new(None)
    }

    /// The group as a committed record has it: empty or stable, nobody waiting.
    pub(crate) fn from_snapshot(snapshot: &GroupSnapshot) -> Self {
        let mut group = ClassicGroup::new(snapshot.state_since);
        group.generation = snapshot.generation;
        group.protocol_type = snapshot.protocol_type.clone();
        group.protocol_name = snapshot.protocol_name.clone();
        for member in &snapshot.members {
            let (id, member) = loaded_member(member, snapshot.protocol_name.clone().unwrap_or_default());
            if let Some(instance_id) = &member.group_instance_id {
                group.static_members.insert(instance_id.clone(), id.clone());
            }
            group.members.insert(id, member);
        }
        let leader = snapshot
            .leader
            .clone()
            .filter(|leader| group.members.contains_key(leader));
        group.leader = leader.or_else(|| group.members.keys().next().cloned());
        if !group.members.is_empty() {
            group.state = GroupState::Stable;
            group.previous_state = GroupState::CompletingRebalance;
        }
        group.subscribed_topics = group.read_subscriptions();
        group
    }

    /// The record of the group with the given assignments; members that have none get an empty one.
    pub(crate) fn record(&self, group_id: &Text, assignments: &BTreeMap<MemberId, Bytes>) -> GroupRecord {
        let protocol = self.protocol_name.clone().unwrap_or_default();
        let members = self.members.iter().map(|(id, member)| MemberSnapshot {
            member_id: id.clone(),
            group_instance_id: member.group_instance_id.clone(),
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            rebalance_timeout_ms: member.terms.rebalance_timeout_ms,
            session_timeout_ms: member.terms.session_timeout_ms,
            subscription: member.metadata(&protocol),
            assignment: assignments.get(id).cloned().unwrap_or_default(),
        });
        GroupRecord::Group {
            group_id: group_id.clone(),
            value: Some(GroupSnapshot {
                protocol_type: self.protocol_type.clone(),
                generation: self.generation,
                protocol_name: self.protocol_name.clone(),
                leader: self.leader.clone(),
                state_since: self.state_since,
                members: members.collect(),
            }),
        }
    }

    pub(crate) fn state(&self) -> GroupState {
        self.state
    }

    /// Whether the log has a record of the group.
    pub(crate) fn is_stored(&self) -> bool {
        self.creation.is_none()
    }

    pub(crate) fn previous_state(&self) -> GroupState {
        self.previous_state
    }

    pub(crate) fn state_since(&self) -> Option<Timestamp> {
        self.state_since
    }

    pub(crate) fn transition(&mut self, state: GroupState, now: Timestamp) {
        self.previous_state = self.state;
        self.state = state;
        self.state_since = Some(now);
    }

    pub(crate) fn is_leader(&self, member_id: &MemberId) -> bool {
        self.leader.as_ref() == Some(member_id)
    }

    pub(crate) fn awaiting_join(&self) -> usize {
        let awaiting = |member: &&Member| member.awaiting_join.is_some();
        self.members.values().filter(awaiting).count()
    }

    /// Everybody known has joined, and no id is out with a client that may still do so.
    pub(crate) fn all_have_joined(&self) -> bool {
        self.pending_members.is_empty() && self.members.values().all(|member| member.awaiting_join.is_some())
    }

    /// The longest that any member asks to be waited for.
    pub(crate) fn rebalance_timeout(&self) -> Duration {
        let timeouts = self.members.values().map(Member::rebalance_timeout);
        timeouts.max().unwrap_or_default()
    }

    /// Whether a member with these protocols can be in the group: its type is the group's, and one of its protocols is
    /// offered by every member.
    pub(crate) fn supports(&self, protocol_type: &str, protocols: &[JoinGroupRequestProtocol]) -> bool {
        if self.state == GroupState::Empty {
            return !protocol_type.is_empty() && !protocols.is_empty();
        }
        let common = self.common_protocols();
        self.protocol_type.as_deref() == Some(protocol_type)
            && protocols.iter().any(|protocol| common.contains(&protocol.name))
    }

    fn common_protocols(&self) -> BTreeSet<Text> {
        let mut offers: BTreeMap<&Text, usize> = BTreeMap::new();
        for member in self.members.values() {
            let names: BTreeSet<_> = member.terms.protocols.iter().map(|offered| &offered.name).collect();
            for name in names {
                *offers.entry(name).or_default() += 1;
            }
        }
        let of_all = |(name, count): (&Text, usize)| (count == self.members.len()).then(|| name.clone());
        offers.into_iter().filter_map(of_all).collect()
    }

    /// Each member votes for the first of its protocols that all offer; the most votes win, the first name among equals.
    pub(crate) fn select_protocol(&self) -> Option<Text> {
        let common = self.common_protocols();
        let mut votes: BTreeMap<&Text, usize> = BTreeMap::new();
        for member in self.members.values() {
            let mut preferred = member.terms.protocols.iter();
            if let Some(choice) = preferred.find(|offered| common.contains(&offered.name)) {
                *votes.entry(&choice.name).or_default() += 1;
            }
        }
        let winner = votes.into_iter().rev().max_by_key(|(_, count)| *count);
        winner.map(|(name, _)| name.clone())
    }

    /// Adds a member that joins. The first one sets the group's protocol type and leads.
    pub(crate) fn add(&mut self, id: MemberId, member: Member, protocol_type: &Text) {
        if self.members.is_empty() {
            self.protocol_type = Some(protocol_type.clone());
        }
        if let Some(instance_id) = &member.group_instance_id {
            self.static_members.insert(instance_id.clone(), id.clone());
        }
        self.pending_members.remove(&id);
        self.leader.get_or_insert_with(|| id.clone());
        self.members.insert(id, member);
    }

    /// Takes out a member or pending id; the lead goes to another member.
    pub(crate) fn remove(&mut self, id: &MemberId) -> Option<Member> {
        self.pending_members.remove(id);
        self.pending_sync.remove(id);
        let removed = self.members.remove(id);
        if let Some(instance_id) = removed.as_ref().and_then(|member| member.group_instance_id.as_ref()) {
            self.static_members.remove(instance_id);
        }
        if self.is_leader(id) {
            self.leader = self.members.keys().next().cloned();
        }
        removed
    }

    /// Gives the static member `old` the id `new`. What the old one waited for is handed out, to be refused.
    pub(crate) fn replace_static(&mut self, old: &MemberId, new: &MemberId) -> Option<Member> {
        let before = self.members.remove(old)?;
        let mut member = before.clone();
        (member.awaiting_join, member.awaiting_sync, member.is_new) = (None, None, false);
        if let Some(instance_id) = &member.group_instance_id {
            self.static_members.insert(instance_id.clone(), new.clone());
        }
        if self.pending_sync.remove(old) {
            self.pending_sync.insert(new.clone());
        }
        if self.is_leader(old) {
            self.leader = Some(new.clone());
        }
        self.members.insert(new.clone(), member);
        Some(before)
    }

    /// Takes in what a member says on joining again. The join that it waited with before, if any, is handed out.
    pub(crate) fn update(&mut self, id: &MemberId, terms: Terms, join: WaitingJoin) -> Option<WaitingJoin> {
        let member = self.members.get_mut(id)?;
        member.terms = terms;
        member.awaiting_join.replace(join)
    }

    /// The lead goes to a member that has joined, if the leader has not; false if nobody has.
    pub(crate) fn elect_joined_leader(&mut self) -> bool {
        let has_joined = |id: &MemberId| {
            self.members
                .get(id)
                .is_some_and(|member| member.awaiting_join.is_some())
        };
        if self.leader.as_ref().is_some_and(has_joined) {
            return true;
        }
        let Some(joined) = self.members.keys().find(|id| has_joined(id)).cloned() else {
            return false;
        };
        self.leader = Some(joined);
        true
    }

    /// Begins the next generation with the members there are: Completing, or Empty without any.
    pub(crate) fn next_generation(&mut self, now: Timestamp) {
        self.generation = self.generation.wrapping_add(1).max(0);
        self.protocol_name = self.select_protocol();
        self.subscribed_topics = self.read_subscriptions();
        self.pending_sync.clear();
        self.assignment_in_flight = None;
        let state = match self.members.is_empty() {
            true => GroupState::Empty,
            false => GroupState::CompletingRebalance,
        };
        self.transition(state, now);
    }

    /// The members as the leader is told of them.
    pub(crate) fn members_for_leader(&self) -> Vec<JoinGroupResponseMember> {
        let protocol = self.protocol_name.clone().unwrap_or_default();
        let members = self.members.iter().map(|(id, member)| JoinGroupResponseMember {
            member_id: id.clone().into(),
            group_instance_id: member.group_instance_id.clone(),
            metadata: member.metadata(&protocol),
            ..JoinGroupResponseMember::default()
        });
        members.collect()
    }

    /// A member that gives an instance id must be the one that the instance has now (KIP-345).
    pub(crate) fn check_member(&self, id: &str, instance_id: Option<&Text>) -> Result<MemberId, ErrorCode> {
        if let Some(instance_id) = instance_id {
            match self.static_members.get(instance_id) {
                None => return Err(ErrorCode::UnknownMemberId),
                Some(current) if Text::from(current.clone()) != *id => return Err(ErrorCode::FencedInstanceId),
                Some(_) => {}
            }
        }
        let (id, _) = self.members.get_key_value(id).ok_or(ErrorCode::UnknownMemberId)?;
        Ok(id.clone())
    }

    pub(crate) fn is_consumer_group(&self) -> bool {
        self.protocol_type.as_deref() == Some(CONSUMER_PROTOCOL)
    }

    /// Whether the coordinator could read what the members subscribe to.
    pub(crate) fn knows_subscriptions(&self) -> bool {
        self.subscribed_topics.is_some()
    }

    /// In doubt, a group of consumers is subscribed.
    pub(crate) fn is_subscribed_to(&self, topic: &str) -> bool {
        match &self.subscribed_topics {
            Some(topics) => topics.contains(topic),
            None => self.is_consumer_group(),
        }
    }

    /// The topics of the members' subscriptions. Only the fields of version 0 are read: all later ones come behind them.
    fn read_subscriptions(&self) -> Option<BTreeSet<Text>> {
        if !self.is_consumer_group() {
            return None;
        }
        let mut topics = BTreeSet::new();
        for member in self.members.values() {
            let metadata = member.metadata(self.protocol_name.as_deref()?);
            let (version, _) = metadata.split_first_chunk::<2>()?;
            if i16::from_be_bytes(*version) < 0 {
                return None;
            }
            let mut reader = Reader::new(metadata.slice(2..));
            let subscription = ConsumerProtocolSubscription::decode(&mut reader, 0).ok()?;
            topics.extend(subscription.topics);
        }
        Some(topics)
    }
}

/// Of a loaded member only the chosen protocol is known; its next join brings the others.
fn loaded_member(snapshot: &MemberSnapshot, protocol_name: Text) -> (MemberId, Member) {
    let rebalance_timeout_ms = match snapshot.rebalance_timeout_ms {
        -1 => snapshot.session_timeout_ms,
        given => given,
    };
    let member = Member {
        group_instance_id: snapshot.group_instance_id.clone(),
        client_id: snapshot.client_id.clone(),
        client_host: snapshot.client_host.clone(),
        terms: Terms {
            rebalance_timeout_ms,
            session_timeout_ms: snapshot.session_timeout_ms,
            protocols: vec![OfferedProtocol {
                name: protocol_name,
                metadata: snapshot.subscription.clone(),
            }],
        },
        assignment: snapshot.assignment.clone(),
        awaiting_join: None,
        awaiting_sync: None,
        is_new: false,
    };
    (snapshot.member_id.clone(), member)
}
