//! One partition of `__consumer_offsets`: routes requests, timers, commits and failures to the group that they concern.

use std::collections::BTreeMap;

use model::{ErrorCode, Monotonic, Offset};
use protocol::Text;
use protocol::messages::heartbeat_response::HeartbeatResponse;

use super::classic::group::{ClassicGroup, GroupState};
use super::classic::member::MemberId;
use super::classic::{Classic, Join, leave_refusal, sync_check, sync_refusal};
use super::config::{GROUPS_MAX, GroupConfig, WRITES_IN_FLIGHT_MAX};
use super::error_map::append_error;
use super::offsets::Offsets;
use super::records::{GroupRecord, GroupSnapshot};
use super::request::{GroupCall, GroupRequest, GroupResponse, fail, refusal};
use super::writes::{Answer, Then, Write, Writes};
use crate::shard::{Effect, Now, Record, ReplayError, Replayed, Shard, Token, WriteId};
use crate::timers::Timers;

/// What a deadline is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TimerKey {
    /// A member must be heard of, or use the id that it was given.
    Session(Text, MemberId),
    /// The members of a group must have joined.
    Join(Text),
    /// The members of a group must have asked for their assignments.
    Sync(Text),
    /// Expired offsets are looked for.
    OffsetExpiry,
}

pub(super) type Effects = Vec<Effect<GroupResponse>>;

/// One partition of `__consumer_offsets`.
#[derive(Debug)]
pub struct GroupShard {
    pub(super) config: GroupConfig,
    pub(super) groups: BTreeMap<Text, ClassicGroup>,
    pub(super) offsets: Offsets,
    pub(super) timers: Timers<TimerKey>,
    pub(super) writes: Writes,
}

impl GroupShard {
    #[must_use]
    pub fn new(config: GroupConfig) -> Self {
        GroupShard {
            config,
            groups: BTreeMap::new(),
            offsets: Offsets::default(),
            timers: Timers::new(),
            writes: Writes::default(),
        }
    }

    /// Operators can change the settings at any time; timers that run are not touched.
    pub fn reconfigure(&mut self, config: GroupConfig) {
        self.config = config;
    }

    /// A group with what a turn on it may touch.
    pub(super) fn classic<'a>(
        &'a mut self,
        group_id: &'a Text,
        now: Now,
        effects: &'a mut Effects,
    ) -> Option<Classic<'a>> {
        Some(Classic {
            group_id,
            group: self.groups.get_mut(group_id)?,
            config: &self.config,
            timers: &mut self.timers,
            writes: &mut self.writes,
            now,
            effects,
        })
    }

    pub(super) fn append(
        &mut self,
        records: Vec<GroupRecord>,
        answer: Option<Answer>,
        then: Then,
        effects: &mut Effects,
    ) -> WriteId {
        self.writes.append(records, answer, then, effects)
    }

    /// The caller is answered when the records are committed, or at once if there are none.
    pub(super) fn answer_when_committed(
        &mut self,
        token: Token,
        response: GroupResponse,
        records: Vec<GroupRecord>,
        then: Then,
        effects: &mut Effects,
    ) {
        if records.is_empty() {
            respond(effects, token, response);
        } else {
            self.append(records, Some((token, response)), then, effects);
        }
    }

    /// A decision without a caller: a group lost its last member by time.
    fn append_own(&mut self, record: Option<GroupRecord>, effects: &mut Effects) {
        if let Some(record) = record {
            self.append(vec![record], None, Then::Nothing, effects);
        }
    }

    fn join(&mut self, join: &Join<'_>, group_id: &Text, token: Token, now: Now, effects: &mut Effects) {
        let is_new = !self.groups.contains_key(group_id);
        let checked = match join.check(&self.config) {
            // Only a member without an id can be the first of a group.
            Ok(()) if is_new && join.has_member_id() => Err(ErrorCode::UnknownMemberId),
            Ok(()) if is_new && self.groups.len() >= GROUPS_MAX => Err(ErrorCode::CoordinatorNotAvailable),
            checked => checked,
        };
        if let Err(error) = checked {
            respond(effects, token, join.refusal(error));
            return;
        }
        if is_new {
            self.groups.insert(group_id.clone(), ClassicGroup::new(Some(now.wall)));
        }
        let record = self
            .classic(group_id, now, effects)
            .and_then(|mut group| group.join(join));
        self.append_own(record, effects);
        if is_new {
            self.store_new_group(group_id, effects);
        }
    }

    /// A group exists from its first record on, which says that it is empty. A group that its first join did not enter is
    /// forgotten.
    fn store_new_group(&mut self, group_id: &Text, effects: &mut Effects) {
        let Some(group) = self.groups.get(group_id) else {
            return;
        };
        if group.members.is_empty() && group.pending_members.is_empty() {
            self.groups.remove(group_id);
            return;
        }
        let record = GroupRecord::Group {
            group_id: group_id.clone(),
            value: Some(GroupSnapshot {
                protocol_type: None,
                generation: 0,
                protocol_name: None,
                leader: None,
                state_since: group.state_since(),
                members: Vec::new(),
            }),
        };
        let then = Then::Create {
            group_id: group_id.clone(),
        };
        let write = self.append(vec![record], None, then, effects);
        if let Some(group) = self.groups.get_mut(group_id) {
            group.creation = Some(write);
        }
    }

    fn dispatch(&mut self, token: Token, call: &GroupCall<'_>, now: Now, effects: &mut Effects) {
        match call.request {
            GroupRequest::JoinGroup(request) => {
                self.join(&Join::new(request, call, token), &request.group_id, token, now, effects);
            }
            GroupRequest::SyncGroup(request) => {
                let checked = sync_check(request, call.version);
                match (checked, self.classic(&request.group_id, now, effects)) {
                    (Ok(()), Some(mut group)) => group.sync(request, token),
                    (Ok(()), None) => respond(effects, token, sync_refusal(ErrorCode::UnknownMemberId)),
                    (Err(error), _) => respond(effects, token, sync_refusal(error)),
                }
            }
            GroupRequest::Heartbeat(request) => {
                let result = match self.classic(&request.group_id, now, effects) {
                    _ if request.group_id.is_empty() => Err(ErrorCode::InvalidGroupId),
                    None => Err(ErrorCode::UnknownMemberId),
                    Some(mut group) => group.heartbeat(request),
                };
                let error_code = result.err().unwrap_or(ErrorCode::None).code();
                respond(
                    effects,
                    token,
                    HeartbeatResponse {
                        error_code,
                        ..HeartbeatResponse::default()
                    },
                );
            }
            GroupRequest::LeaveGroup(request) if request.group_id.is_empty() => {
                respond(
                    effects,
                    token,
                    refusal(call.request, call.version, ErrorCode::InvalidGroupId),
                );
            }
            GroupRequest::LeaveGroup(request) => match self.classic(&request.group_id, now, effects) {
                Some(mut group) => group.leave(request, call.version, token),
                None => respond(effects, token, leave_refusal(request, call.version)),
            },
            GroupRequest::OffsetCommit(request) => self.offset_commit(request, call, token, now, effects),
            GroupRequest::OffsetDelete(request) => self.offset_delete(request, call, token, effects),
            GroupRequest::OffsetFetch(request) => respond(effects, token, self.offset_fetch(request, call)),
            GroupRequest::DescribeGroups(request) => {
                respond(effects, token, self.describe_groups(request, call.version));
            }
            GroupRequest::ListGroups(request) => respond(effects, token, self.list_groups(request)),
            GroupRequest::DeleteGroups(request) => self.delete_groups(request, token, effects),
        }
    }

    fn timer(&mut self, key: TimerKey, now: Now, effects: &mut Effects) {
        let record = match &key {
            TimerKey::Session(group_id, member_id) => self
                .classic(group_id, now, effects)
                .and_then(|mut group| group.session_is_over(member_id)),
            TimerKey::Join(group_id) => self
                .classic(group_id, now, effects)
                .and_then(|mut group| group.join_time_is_up()),
            TimerKey::Sync(group_id) => self
                .classic(group_id, now, effects)
                .and_then(|mut group| group.sync_time_is_up()),
            TimerKey::OffsetExpiry => {
                self.expire_offsets(now, effects);
                None
            }
        };
        self.append_own(record, effects);
    }

    /// Applies a committed record. While the partition is being loaded (`live` is false) a group's record is the group;
    /// live, the group has moved on by itself.
    fn apply(&mut self, record: GroupRecord, live: bool) {
        match record {
            GroupRecord::Offset {
                group_id,
                topic,
                partition,
                value: Some(value),
            } => {
                self.keep_committed_group(&group_id);
                self.offsets.put(group_id, topic, partition, value);
            }
            GroupRecord::Offset {
                group_id,
                topic,
                partition,
                value: None,
            } => {
                self.offsets.remove(&group_id, &topic, partition);
            }
            GroupRecord::Group {
                group_id,
                value: Some(snapshot),
            } => {
                if !live {
                    self.groups.insert(group_id, ClassicGroup::from_snapshot(&snapshot));
                }
            }
            GroupRecord::Group { group_id, value: None } => {
                // A group that a decision to delete took away may exist anew: its first record comes later in the log.
                if self.groups.get(&group_id).is_some_and(ClassicGroup::is_stored) {
                    self.groups.remove(&group_id);
                }
            }
        }
    }

    fn write_committed(&mut self, write: Write, now: Now, effects: &mut Effects) {
        for record in write.records {
            self.apply(record, true);
        }
        match write.then {
            Then::Nothing | Then::Delete { .. } => {}
            Then::Create { group_id } => {
                if let Some(group) = self.group_created_by(write.id, &group_id) {
                    group.creation = None;
                }
            }
            Then::Assign { group_id, assignments } => {
                if let Some(mut group) = self.classic(&group_id, now, effects) {
                    group.assignment_committed(write.id, &assignments);
                }
            }
            Then::Rejoin(rejoin) => {
                if let Some(mut group) = self.classic(&rejoin.group_id, now, effects) {
                    group.static_rejoin_committed(&rejoin);
                }
            }
        }
        if let Some((token, response)) = write.answer {
            respond(effects, token, response);
        }
    }

    fn write_failed(&mut self, write: Write, error: ErrorCode, now: Now, effects: &mut Effects) {
        match write.then {
            Then::Nothing => {}
            Then::Create { group_id } => {
                if self.group_created_by(write.id, &group_id).is_some() {
                    self.forget_group(group_id, append_error(error), now, effects);
                }
            }
            Then::Assign { group_id, .. } => {
                let record = self
                    .classic(&group_id, now, effects)
                    .and_then(|mut group| group.assignment_failed(write.id, error));
                self.append_own(record, effects);
            }
            Then::Rejoin(rejoin) => {
                if let Some(mut group) = self.classic(&rejoin.group_id, now, effects) {
                    group.static_rejoin_failed(&rejoin, error);
                }
            }
            Then::Delete { groups } => {
                for (group_id, group) in groups {
                    self.groups.entry(group_id).or_insert(group);
                }
            }
        }
        if let Some((token, response)) = write.answer {
            respond(effects, token, fail(response, append_error(error)));
        }
    }

    /// The group, if it is still the one that the write was the first of.
    fn group_created_by(&mut self, write: WriteId, group_id: &Text) -> Option<&mut ClassicGroup> {
        let group = self.groups.get_mut(group_id)?;
        (group.creation == Some(write)).then_some(group)
    }

    /// The group's first record is not in the log. What was committed to it meanwhile is.
    fn forget_group(&mut self, group_id: Text, error: ErrorCode, now: Now, effects: &mut Effects) {
        if let Some(mut group) = self.classic(&group_id, now, effects) {
            group.dissolve(error);
        }
        self.groups.remove(&group_id);
        if self.offsets.has_group(&group_id) {
            self.keep_committed_group(&group_id);
        }
    }

    /// A group with offsets exists, unless its tombstone is on its way: who joins until that is committed founds a new
    /// group, which the tombstone must not take for the old one.
    fn keep_committed_group(&mut self, group_id: &Text) {
        if !self.groups.contains_key(group_id) && !self.writes.will_delete(group_id) {
            self.groups.insert(group_id.clone(), ClassicGroup::committed_to());
        }
    }

    /// Undoes what could not even be written down.
    fn settle(&mut self, now: Now, effects: &mut Effects) {
        while let Some(write) = self.writes.take_unencodable() {
            self.append_failed(write, ErrorCode::UnknownServerError, now, effects);
        }
    }
}

impl Shard for GroupShard {
    type Call<'a> = GroupCall<'a>;
    type Response = GroupResponse;

    fn replay(&mut self, record: &Record) -> Result<Replayed, ReplayError> {
        match GroupRecord::decode(record)? {
            Ok(record) => {
                self.apply(record, false);
                Ok(Replayed::Applied)
            }
            Err(record_type) => Ok(Replayed::Unknown { record_type }),
        }
    }

    fn loaded(&mut self, now: Now, effects: &mut Effects) {
        let members = self.groups.iter().flat_map(|(group_id, group)| {
            group
                .members
                .keys()
                .map(|member_id| (group_id.clone(), member_id.clone()))
        });
        let members: Vec<_> = members.collect();
        for (group_id, member_id) in members {
            if let Some(mut group) = self.classic(&group_id, now, effects) {
                group.renew_session(&member_id);
            }
        }
        let too_great = self
            .groups
            .iter()
            .filter(|(_, group)| group.members.len() > self.config.group_size_max);
        let too_great: Vec<Text> = too_great.map(|(group_id, _)| group_id.clone()).collect();
        for group_id in too_great {
            let record = self
                .classic(&group_id, now, effects)
                .and_then(|mut group| group.begin_rebalance());
            self.append_own(record, effects);
        }
        self.schedule_offset_expiry(now);
        self.settle(now, effects);
    }

    fn handle(&mut self, token: Token, call: GroupCall<'_>, now: Now, effects: &mut Effects) {
        if call.may_write() && self.writes.len() >= WRITES_IN_FLIGHT_MAX {
            let response = refusal(call.request, call.version, ErrorCode::CoordinatorLoadInProgress);
            respond(effects, token, response);
            return;
        }
        self.dispatch(token, &call, now, effects);
        self.settle(now, effects);
    }

    fn next_deadline(&self) -> Option<Monotonic> {
        self.timers.next()
    }

    fn on_tick(&mut self, now: Now, effects: &mut Effects) {
        for (key, due) in self.timers.due(now.monotonic) {
            if self.timers.take(&key, due) {
                self.timer(key, now, effects);
            }
        }
        self.settle(now, effects);
    }

    fn appended(&mut self, write: WriteId, end: Offset) {
        self.writes.appended(write, end);
    }

    fn append_failed(&mut self, write: WriteId, error: ErrorCode, now: Now, effects: &mut Effects) {
        if let Some(write) = self.writes.failed(write) {
            self.write_failed(write, error, now, effects);
        }
        self.settle(now, effects);
    }

    fn committed(&mut self, high_watermark: Offset, now: Now, effects: &mut Effects) {
        while let Some(write) = self.writes.next_committed(high_watermark) {
            self.write_committed(write, now, effects);
        }
        self.settle(now, effects);
    }

    fn resign(&mut self, error: ErrorCode, effects: &mut Effects) {
        for write in self.writes.take_all() {
            if let Some((token, response)) = write.answer {
                respond(effects, token, fail(response, error));
            }
        }
        let waiting = self.groups.values_mut().flat_map(|group| group.members.values_mut());
        for member in waiting {
            if let Some(join) = member.awaiting_join.take() {
                respond(effects, join.token, super::classic::join_refusal(error, join.version));
            }
            if let Some(token) = member.awaiting_sync.take() {
                respond(effects, token, sync_refusal(error));
            }
        }
        self.groups.clear();
        self.offsets = Offsets::default();
        self.timers.clear();
    }
}

pub(super) fn respond(effects: &mut Effects, token: Token, response: impl Into<GroupResponse>) {
    let response = response.into();
    effects.push(Effect::Respond { token, response });
}

impl ClassicGroup {
    /// Nobody is in the group or about to be.
    pub(super) fn is_deserted(&self) -> bool {
        self.state() == GroupState::Empty && self.pending_members.is_empty()
    }
}
