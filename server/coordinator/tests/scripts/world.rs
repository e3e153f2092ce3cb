//! A shard with its shell: a log, a clock, callers who wait, and simulated members.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

use bytes::Bytes;
use coordinator::group::{GroupCall, GroupConfig, GroupRequest, GroupResponse, TopicLookup};
use coordinator::{Effect, GroupShard, Now, Record, Shard, Token, WriteId};
use model::{ErrorCode, Monotonic, Offset, Timestamp, Uuid};
use protocol::messages::heartbeat_request::HeartbeatRequest;
use protocol::messages::join_group_request::{JoinGroupRequest, JoinGroupRequestProtocol};
use protocol::messages::join_group_response::JoinGroupResponse;
use protocol::messages::offset_commit_request::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use protocol::messages::offset_commit_response::OffsetCommitResponse;
use protocol::messages::offset_fetch_request::{OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use protocol::messages::sync_group_request::{SyncGroupRequest, SyncGroupRequestAssignment};
use protocol::messages::sync_group_response::SyncGroupResponse;

/// The wall clock when the monotonic one stands at 0.
pub(crate) const EPOCH: i64 = 1_700_000_000_000;

/// The topics of the cluster: name and id.
#[derive(Default)]
pub(crate) struct Topics(pub(crate) BTreeMap<String, Uuid>);

impl TopicLookup for Topics {
    fn id(&self, name: &str) -> Option<Uuid> {
        self.0.get(name).copied()
    }

    fn name(&self, id: Uuid) -> Option<String> {
        let mut topics = self.0.iter();
        topics.find(|(_, own)| **own == id).map(|(name, _)| name.clone())
    }

    fn has_partition(&self, name: &str, partition: i32) -> bool {
        self.0.contains_key(name) && (0..4).contains(&partition)
    }
}

pub(crate) fn topic_id(seed: u8) -> Uuid {
    Uuid::from_bytes([seed; 16])
}

pub(crate) struct World {
    pub(crate) config: GroupConfig,
    pub(crate) shard: GroupShard,
    pub(crate) topics: Topics,
    pub(crate) log: Vec<Record>,
    /// Appends that the shell has taken and the log has not.
    pub(crate) appends: VecDeque<(WriteId, Vec<Record>)>,
    /// Whether appends reach the log and are committed as soon as they come.
    pub(crate) commits: bool,
    pub(crate) answers: BTreeMap<Token, GroupResponse>,
    pub(crate) waiting: BTreeSet<Token>,
    pub(crate) client_id: String,
    pub(crate) entropy: Option<[u8; 16]>,
    now_ms: u64,
    tokens: u64,
}

impl World {
    pub(crate) fn new() -> Self {
        World::with(GroupConfig::default())
    }

    pub(crate) fn with(config: GroupConfig) -> Self {
        let mut world = World {
            shard: GroupShard::new(config.clone()),
            config,
            topics: Topics::default(),
            log: Vec::new(),
            appends: VecDeque::new(),
            commits: true,
            answers: BTreeMap::new(),
            waiting: BTreeSet::new(),
            client_id: "client".into(),
            entropy: None,
            now_ms: 0,
            tokens: 0,
        };
        for (seed, name) in [(1, "orders"), (2, "other")] {
            world.topics.0.insert(name.into(), topic_id(seed));
        }
        let (now, mut effects) = (world.now(), Vec::new());
        world.shard.loaded(now, &mut effects);
        world.carry_out(effects);
        world
    }

    pub(crate) fn now(&self) -> Now {
        Now {
            wall: Timestamp::from_millis(EPOCH + i64::try_from(self.now_ms).unwrap()),
            monotonic: Monotonic::from_millis(self.now_ms),
        }
    }

    fn carry_out(&mut self, effects: Vec<Effect<GroupResponse>>) {
        for effect in effects {
            match effect {
                Effect::Append { write, records } => self.appends.push_back((write, records)),
                Effect::Respond { token, response } => {
                    assert!(
                        self.waiting.remove(&token),
                        "{token:?} is answered twice or was never asked"
                    );
                    self.answers.insert(token, response);
                }
            }
        }
        if self.commits {
            self.commit_all();
        }
    }

    /// All appends reach the log and are committed.
    pub(crate) fn commit_all(&mut self) {
        while !self.appends.is_empty() {
            self.append_all();
            self.commit_written();
        }
    }

    /// What is in the log is committed.
    pub(crate) fn commit_written(&mut self) {
        let (now, mut effects) = (self.now(), Vec::new());
        self.shard.committed(self.end(), now, &mut effects);
        self.carry_out(effects);
    }

    /// Carries out effects that a test has called forth by itself.
    pub(crate) fn take(&mut self, effects: Vec<Effect<GroupResponse>>) {
        self.carry_out(effects);
    }

    fn end(&self) -> Offset {
        Offset::new(i64::try_from(self.log.len()).unwrap())
    }

    pub(crate) fn append_all(&mut self) {
        for (write, records) in std::mem::take(&mut self.appends) {
            self.log.extend(records);
            self.shard.appended(write, self.end());
        }
    }

    pub(crate) fn fail_all(&mut self, error: ErrorCode) {
        for (write, _) in std::mem::take(&mut self.appends) {
            let (now, mut effects) = (self.now(), Vec::new());
            self.shard.append_failed(write, error, now, &mut effects);
            self.carry_out(effects);
        }
    }

    /// The shard is lost, and another is loaded from the log. Callers get no answer.
    pub(crate) fn fail_over(&mut self) {
        self.shard = GroupShard::new(self.config.clone());
        for record in &self.log {
            self.shard.replay(record).unwrap();
        }
        self.waiting.clear();
        self.appends.clear();
        let (now, mut effects) = (self.now(), Vec::new());
        self.shard.loaded(now, &mut effects);
        self.carry_out(effects);
    }

    /// Time passes, and every deadline on the way is met in its time.
    pub(crate) fn pass(&mut self, millis: u64) {
        let end = self.now_ms + millis;
        while let Some(next) = self.shard.next_deadline() {
            let next = u64::try_from(next.since_start().as_millis()).unwrap();
            if next > end {
                break;
            }
            self.now_ms = self.now_ms.max(next);
            self.tick();
        }
        self.now_ms = end;
    }

    pub(crate) fn tick(&mut self) {
        let (now, mut effects) = (self.now(), Vec::new());
        self.shard.on_tick(now, &mut effects);
        self.carry_out(effects);
    }

    /// Sets the clock without meeting any deadline; for records with given times.
    pub(crate) fn set_clock(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
    }

    pub(crate) fn send(&mut self, version: i16, request: impl Into<GroupRequest>) -> Token {
        self.tokens += 1;
        let token = Token(self.tokens);
        self.waiting.insert(token);
        let request = request.into();
        let call = GroupCall {
            request: &request,
            version,
            client_id: &self.client_id,
            client_address: IpAddr::from([127, 0, 0, 1]),
            entropy: self.entropy.unwrap_or_else(|| u128::from(self.tokens).to_be_bytes()),
            topics: &self.topics,
        };
        let (now, mut effects) = (self.now(), Vec::new());
        self.shard.handle(token, call, now, &mut effects);
        self.carry_out(effects);
        token
    }

    pub(crate) fn call(&mut self, version: i16, request: impl Into<GroupRequest>) -> GroupResponse {
        let token = self.send(version, request);
        self.answer(token)
    }

    pub(crate) fn waits(&self, token: Token) -> bool {
        self.waiting.contains(&token)
    }

    pub(crate) fn answer(&mut self, token: Token) -> GroupResponse {
        self.answers
            .remove(&token)
            .unwrap_or_else(|| panic!("{token:?} has no answer"))
    }

    pub(crate) fn joined(&mut self, token: Token) -> JoinGroupResponse {
        match self.answer(token) {
            GroupResponse::JoinGroup(response) => response,
            other => panic!("{other:?} is no answer to a join"),
        }
    }

    pub(crate) fn synced(&mut self, token: Token) -> SyncGroupResponse {
        match self.answer(token) {
            GroupResponse::SyncGroup(response) => response,
            other => panic!("{other:?} is no answer to a sync"),
        }
    }

    /// A member id for a group, as version 4 and later give it out.
    pub(crate) fn member_id(&mut self, group: &str) -> String {
        let token = self.send(9, join(group, ""));
        let response = self.joined(token);
        assert_eq!(error(response.error_code), ErrorCode::MemberIdRequired);
        response.member_id.to_string()
    }

    /// A stable group of `count` members; the first one leads.
    pub(crate) fn stable_group(&mut self, group: &str, count: usize) -> Vec<Member> {
        let ids: Vec<String> = (0..count).map(|_| self.member_id(group)).collect();
        let joins: Vec<Token> = ids.iter().map(|id| self.send(9, join(group, id))).collect();
        self.pass(3_000 * (count as u64 + 1));
        let mut members: Vec<Member> = joins
            .into_iter()
            .map(|token| Member::of(group, &self.joined(token)))
            .collect();
        members.sort_by_key(|member| !member.leads);
        self.sync_all(&members);
        for member in &members {
            assert_eq!(self.heartbeat(member), ErrorCode::None);
        }
        members
    }

    /// All members sync, the leader's assignments being each member's id.
    pub(crate) fn sync_all(&mut self, members: &[Member]) {
        let ids: Vec<&str> = members.iter().map(|member| &*member.id).collect();
        let syncs: Vec<Token> = members
            .iter()
            .map(|member| {
                let assignments: &[&str] = if member.leads { &ids } else { &[] };
                self.send(5, sync(member, assignments))
            })
            .collect();
        for (token, member) in syncs.into_iter().zip(members) {
            let response = self.synced(token);
            assert_eq!(error(response.error_code), ErrorCode::None);
            assert_eq!(response.assignment, member.id.as_bytes());
        }
    }

    pub(crate) fn heartbeat(&mut self, member: &Member) -> ErrorCode {
        match self.call(4, heartbeat(member)) {
            GroupResponse::Heartbeat(response) => error(response.error_code),
            other => panic!("{other:?} is no answer to a heartbeat"),
        }
    }

    /// The committed offset of `orders`, and −1 for none.
    pub(crate) fn offset(&mut self, group: &str, partition: i32) -> i64 {
        match self.call(9, fetch(group, "orders", &[partition])) {
            GroupResponse::OffsetFetch(response) => response.groups[0].topics[0].partitions[0].committed_offset,
            other => panic!("{other:?} is no answer to a fetch of offsets"),
        }
    }

    pub(crate) fn commit(&mut self, version: i16, request: OffsetCommitRequest) -> ErrorCode {
        let token = self.send(version, request);
        self.committed(token)
    }

    pub(crate) fn committed(&mut self, token: Token) -> ErrorCode {
        match self.answer(token) {
            GroupResponse::OffsetCommit(response) => commit_error(&response),
            other => panic!("{other:?} is no answer to a commit"),
        }
    }

    pub(crate) fn state(&mut self, group: &str) -> String {
        self.described(group).group_state.to_string()
    }

    pub(crate) fn described(&mut self, group: &str) -> protocol::messages::describe_groups_response::DescribedGroup {
        let request = protocol::messages::describe_groups_request::DescribeGroupsRequest {
            groups: vec![group.into()],
            ..Default::default()
        };
        match self.call(6, request) {
            GroupResponse::DescribeGroups(mut response) => response.groups.remove(0),
            other => panic!("{other:?} is no description"),
        }
    }
}

/// What a member knows of itself.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Member {
    pub(crate) group: String,
    pub(crate) id: String,
    pub(crate) instance: Option<String>,
    pub(crate) generation: i32,
    pub(crate) leads: bool,
}

impl Member {
    pub(crate) fn of(group: &str, joined: &JoinGroupResponse) -> Self {
        assert_eq!(error(joined.error_code), ErrorCode::None);
        Member {
            group: group.into(),
            id: joined.member_id.to_string(),
            instance: None,
            generation: joined.generation_id,
            leads: joined.leader == joined.member_id,
        }
    }
}

pub(crate) fn error(code: i16) -> ErrorCode {
    ErrorCode::from_code(code).unwrap()
}

pub(crate) fn commit_error(response: &OffsetCommitResponse) -> ErrorCode {
    error(response.topics[0].partitions[0].error_code)
}

/// A join of a consumer that offers `range` with an empty subscription.
pub(crate) fn join(group: &str, member_id: &str) -> JoinGroupRequest {
    JoinGroupRequest {
        group_id: group.into(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 60_000,
        member_id: member_id.into(),
        protocol_type: "consumer".into(),
        protocols: vec![offer("range", &subscription(&["orders"]))],
        ..JoinGroupRequest::default()
    }
}

pub(crate) fn offer(name: &str, metadata: &[u8]) -> JoinGroupRequestProtocol {
    JoinGroupRequestProtocol {
        name: name.into(),
        metadata: Bytes::copy_from_slice(metadata),
        ..JoinGroupRequestProtocol::default()
    }
}

/// ConsumerProtocolSubscription, version 0.
pub(crate) fn subscription(topics: &[&str]) -> Vec<u8> {
    let mut bytes = vec![0, 0];
    bytes.extend(u32::try_from(topics.len()).unwrap().to_be_bytes());
    for topic in topics {
        bytes.extend(u16::try_from(topic.len()).unwrap().to_be_bytes());
        bytes.extend(topic.as_bytes());
    }
    bytes.extend((-1i32).to_be_bytes());
    bytes
}

/// Assigns to each of `members` its own id.
pub(crate) fn sync(member: &Member, members: &[&str]) -> SyncGroupRequest {
    let assignments = members.iter().map(|id| SyncGroupRequestAssignment {
        member_id: (*id).into(),
        assignment: Bytes::copy_from_slice(id.as_bytes()),
        ..SyncGroupRequestAssignment::default()
    });
    SyncGroupRequest {
        group_id: (&*member.group).into(),
        generation_id: member.generation,
        member_id: (&*member.id).into(),
        group_instance_id: member.instance.as_deref().map(Into::into),
        protocol_type: Some("consumer".into()),
        protocol_name: Some("range".into()),
        assignments: assignments.collect(),
        ..SyncGroupRequest::default()
    }
}

pub(crate) fn heartbeat(member: &Member) -> HeartbeatRequest {
    HeartbeatRequest {
        group_id: (&*member.group).into(),
        generation_id: member.generation,
        member_id: (&*member.id).into(),
        group_instance_id: member.instance.as_deref().map(Into::into),
        ..HeartbeatRequest::default()
    }
}

/// A commit to `orders` from outside group management.
pub(crate) fn simple_commit(group: &str, partition: i32, offset: i64) -> OffsetCommitRequest {
    OffsetCommitRequest {
        group_id: group.into(),
        generation_id_or_member_epoch: -1,
        topics: vec![OffsetCommitRequestTopic {
            name: "orders".into(),
            topic_id: topic_id(1),
            partitions: vec![OffsetCommitRequestPartition {
                partition_index: partition,
                committed_offset: offset,
                committed_leader_epoch: 3,
                committed_metadata: Some("note".into()),
                ..OffsetCommitRequestPartition::default()
            }],
            ..OffsetCommitRequestTopic::default()
        }],
        ..OffsetCommitRequest::default()
    }
}

pub(crate) fn member_commit(member: &Member, partition: i32, offset: i64) -> OffsetCommitRequest {
    OffsetCommitRequest {
        generation_id_or_member_epoch: member.generation,
        member_id: (&*member.id).into(),
        group_instance_id: member.instance.as_deref().map(Into::into),
        ..simple_commit(&member.group, partition, offset)
    }
}

pub(crate) fn fetch(group: &str, topic: &str, partitions: &[i32]) -> OffsetFetchRequest {
    OffsetFetchRequest {
        groups: vec![OffsetFetchRequestGroup {
            group_id: group.into(),
            topics: Some(vec![OffsetFetchRequestTopics {
                name: topic.into(),
                partition_indexes: partitions.to_vec(),
                ..OffsetFetchRequestTopics::default()
            }]),
            ..OffsetFetchRequestGroup::default()
        }],
        ..OffsetFetchRequest::default()
    }
}
