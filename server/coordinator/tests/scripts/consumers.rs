//! Simulated consumers that join, assign and heartbeat as Kafka's clients do, through whole lives of groups.

use std::collections::BTreeMap;

use model::ErrorCode;

use crate::world::{Member, World, error, join, member_commit, simple_commit, sync};

/// A consumer process: its id, once it has one, and the partitions that it owns.
#[derive(Debug)]
struct Consumer {
    member: Option<Member>,
    owned: Vec<i32>,
    alive: bool,
}

/// All consumers of a group on a topic of four partitions.
struct Consumers {
    group: &'static str,
    consumers: Vec<Consumer>,
}

const PARTITIONS: i32 = 4;

impl Consumers {
    fn new(group: &'static str) -> Self {
        Consumers {
            group,
            consumers: Vec::new(),
        }
    }

    fn start(&mut self, world: &mut World) -> usize {
        let id = world.member_id(self.group);
        let member = Member {
            group: self.group.into(),
            id,
            instance: None,
            generation: -1,
            leads: false,
        };
        self.consumers.push(Consumer {
            member: Some(member),
            owned: Vec::new(),
            alive: true,
        });
        self.consumers.len() - 1
    }

    /// A clean close.
    fn close(&mut self, world: &mut World, at: usize) {
        use protocol::messages::leave_group_request::{LeaveGroupRequest, MemberIdentity};
        let member = self.consumers[at].member.take().unwrap();
        let leaving = MemberIdentity {
            member_id: (&*member.id).into(),
            ..MemberIdentity::default()
        };
        world.call(
            5,
            LeaveGroupRequest {
                group_id: self.group.into(),
                members: vec![leaving],
                ..Default::default()
            },
        );
        self.consumers[at].alive = false;
        self.consumers[at].owned.clear();
    }

    fn live(&self) -> Vec<usize> {
        (0..self.consumers.len())
            .filter(|at| self.consumers[*at].alive)
            .collect()
    }

    /// Live consumers send heartbeats and do as they are told, for `seconds`.
    fn run(&mut self, world: &mut World, seconds: u64) {
        for _ in 0..seconds {
            self.turn(world);
            world.pass(1_000);
        }
    }

    fn turn(&mut self, world: &mut World) {
        let wants = |world: &mut World, consumer: &Consumer| {
            let member = consumer.member.as_ref().unwrap();
            member.generation < 0 || world.heartbeat(member) != ErrorCode::None
        };
        let live = self.live();
        let joining = live.into_iter().filter(|at| wants(world, &self.consumers[*at])).count();
        if joining > 0 {
            self.rebalance(world);
        }
    }

    /// All live consumers join, and the leader gives out the partitions in ranges.
    fn rebalance(&mut self, world: &mut World) {
        let live = self.live();
        let id = |consumers: &Consumers, at: usize| consumers.consumers[at].member.as_ref().unwrap().id.clone();
        let tokens: Vec<_> = live
            .iter()
            .map(|at| {
                let request = join(self.group, &id(self, *at));
                world.send(9, request)
            })
            .collect();
        while tokens.iter().any(|token| world.waits(*token)) {
            world.pass(500);
        }
        let joined: Vec<_> = tokens.into_iter().map(|token| world.joined(token)).collect();
        let leader = joined.iter().find(|joined| !joined.members.is_empty()).unwrap();
        let ids: Vec<String> = leader
            .members
            .iter()
            .map(|member| member.member_id.to_string())
            .collect();
        let assigned = range_assignment(&ids);
        let mut syncs = Vec::new();
        for (at, joined) in live.iter().zip(&joined) {
            let member = Member::of(self.group, joined);
            let mut request = sync(&member, &[]);
            if member.leads {
                request.assignments = assigned
                    .iter()
                    .map(
                        |(id, partitions)| protocol::messages::sync_group_request::SyncGroupRequestAssignment {
                            member_id: (&**id).into(),
                            assignment: partitions
                                .iter()
                                .map(|partition| u8::try_from(*partition).unwrap())
                                .collect(),
                            ..Default::default()
                        },
                    )
                    .collect();
            }
            syncs.push(world.send(5, request));
            self.consumers[*at].member = Some(member);
        }
        for (at, token) in live.into_iter().zip(syncs) {
            let synced = world.synced(token);
            assert_eq!(error(synced.error_code), ErrorCode::None);
            self.consumers[at].owned = synced
                .assignment
                .iter()
                .map(|partition| i32::from(*partition))
                .collect();
        }
    }

    fn owned(&self) -> Vec<Vec<i32>> {
        let mut owned: Vec<_> = self
            .live()
            .into_iter()
            .map(|at| self.consumers[at].owned.clone())
            .collect();
        owned.sort();
        owned
    }
}

fn range_assignment(ids: &[String]) -> BTreeMap<String, Vec<i32>> {
    let mut ids = ids.to_vec();
    ids.sort();
    let count = i32::try_from(ids.len()).unwrap();
    let (each, more) = (PARTITIONS / count, PARTITIONS % count);
    let mut next = 0;
    let ranges = ids.into_iter().zip(0..).map(|(id, at)| {
        let end = next + each + i32::from(at < more);
        (id, (std::mem::replace(&mut next, end)..end).collect())
    });
    ranges.collect()
}

#[test]
fn four_partitions_go_to_one_two_four_and_five_consumers() {
    let expected: [(usize, &[&[i32]]); 4] = [
        (1, &[&[0, 1, 2, 3]]),
        (2, &[&[0, 1], &[2, 3]]),
        (4, &[&[0], &[1], &[2], &[3]]),
        (5, &[&[], &[0], &[1], &[2], &[3]]),
    ];
    for (count, owned) in expected {
        let mut world = World::new();
        let mut consumers = Consumers::new("g");
        for _ in 0..count {
            consumers.start(&mut world);
        }
        consumers.run(&mut world, 10);
        assert_eq!(consumers.owned(), owned, "{count} consumers");
    }
}

#[test]
fn consumers_join_leave_and_crash_while_a_second_group_is_not_disturbed() {
    let mut world = World::new();
    let (mut consumers, mut other) = (Consumers::new("g"), Consumers::new("other"));
    let both = |world: &mut World, consumers: &mut Consumers, other: &mut Consumers, seconds: u64| {
        for _ in 0..seconds {
            consumers.turn(world);
            other.turn(world);
            world.pass(1_000);
        }
    };
    other.start(&mut world);
    other.run(&mut world, 5);

    consumers.start(&mut world);
    both(&mut world, &mut consumers, &mut other, 5);
    assert_eq!(consumers.owned(), [[0, 1, 2, 3]]);
    let second = consumers.start(&mut world);
    both(&mut world, &mut consumers, &mut other, 5);
    assert_eq!(consumers.owned(), [[0, 1], [2, 3]]);
    consumers.close(&mut world, second);
    both(&mut world, &mut consumers, &mut other, 1);
    assert_eq!(
        consumers.owned(),
        [[0, 1, 2, 3]],
        "a clean close is seen with the next heartbeat"
    );

    let third = consumers.start(&mut world);
    both(&mut world, &mut consumers, &mut other, 5);
    let lost = consumers.consumers[third].owned.clone();
    consumers.consumers[third].alive = false;
    both(&mut world, &mut consumers, &mut other, 5);
    let kept: Vec<i32> = (0..PARTITIONS).filter(|partition| !lost.contains(partition)).collect();
    assert_eq!(
        consumers.owned(),
        [kept],
        "until the session is over its partitions are nobody's"
    );
    both(&mut world, &mut consumers, &mut other, 7);
    assert_eq!(consumers.owned(), [[0, 1, 2, 3]]);
    assert_eq!(
        other.consumers[0].member.as_ref().unwrap().generation,
        1,
        "the second group never rebalanced"
    );
}

#[test]
fn a_consumer_resumes_where_its_group_committed_whatever_it_has_processed() {
    for committed in [5, 15] {
        let mut world = World::new();
        let mut consumers = Consumers::new("g");
        let first = consumers.start(&mut world);
        consumers.run(&mut world, 5);
        let member = consumers.consumers[first].member.clone().unwrap();
        assert_eq!(world.commit(9, member_commit(&member, 0, committed)), ErrorCode::None);
        consumers.consumers[first].alive = false;
        world.fail_over();
        consumers.start(&mut world);
        consumers.run(&mut world, 20);
        assert_eq!(world.offset("g", 0), committed, "9 was the last that was processed");
    }
}

#[test]
fn a_consumer_that_assigns_itself_commits_without_a_member_or_rebalance() {
    let mut world = World::new();
    for partition in [0, 2] {
        assert_eq!(world.commit(9, simple_commit("alone", partition, 3)), ErrorCode::None);
    }
    let group = world.described("alone");
    assert_eq!(
        (&*group.group_state, &*group.protocol_type, group.members.len()),
        ("Empty", "", 0)
    );
    world.pass(60_000);
    assert_eq!(world.log.len(), 2, "nothing but the two offsets was written");
}
