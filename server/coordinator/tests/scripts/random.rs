//! Random members, times, failures and fail-overs; what must hold whatever happens.

use std::collections::BTreeMap;

use coordinator::group::{GroupConfig, GroupResponse};
use coordinator::{Shard, Token};
use model::ErrorCode;
use proptest::prelude::*;
use protocol::messages::delete_groups_request::DeleteGroupsRequest;
use protocol::messages::join_group_request::JoinGroupRequest;
use protocol::messages::leave_group_request::{LeaveGroupRequest, MemberIdentity};

use crate::world::{Member, World, error, heartbeat, join, member_commit, simple_commit, sync};

const PROCESSES: usize = 5;

#[derive(Clone, Debug)]
enum Step {
    Join(usize),
    Sync(usize),
    Heartbeat(usize),
    Leave(usize),
    Commit(usize),
    /// The process forgets all, as after a crash.
    Restart(usize),
    /// A commit from outside group management.
    SimpleCommit,
    Delete,
    Pass(u64),
    Append,
    Commits,
    Fails,
    FailOver,
    Resign,
}

fn step() -> impl Strategy<Value = Step> {
    let process = 0..PROCESSES;
    prop_oneof![
        8 => process.clone().prop_map(Step::Join),
        6 => process.clone().prop_map(Step::Sync),
        4 => process.clone().prop_map(Step::Heartbeat),
        1 => process.clone().prop_map(Step::Leave),
        4 => process.clone().prop_map(Step::Commit),
        1 => process.prop_map(Step::Restart),
        1 => Just(Step::SimpleCommit),
        1 => Just(Step::Delete),
        6 => prop_oneof![1..100u64, 3_000..12_000u64].prop_map(Step::Pass),
        3 => Just(Step::Append),
        5 => Just(Step::Commits),
        1 => Just(Step::Fails),
        1 => Just(Step::FailOver),
        1 => Just(Step::Resign),
    ]
}

/// A client process; the last two are static members.
#[derive(Clone, Debug, Default)]
struct Process {
    member_id: String,
    member: Option<Member>,
    /// A request of its own that it waits for; it sends no other of that kind.
    asked: Option<Token>,
}

/// The processes, and what they may hold the coordinator to.
struct Run {
    world: World,
    processes: Vec<Process>,
    /// The greatest generation that any member was told since the last loss of unstored state.
    generation: i32,
    /// Who leads, by generation, since then.
    leaders: BTreeMap<i32, String>,
    /// The greatest offset that was acknowledged.
    acknowledged: i64,
    commits: Vec<(Token, i64)>,
    next_offset: i64,
}

impl Run {
    fn new() -> Self {
        // A group that nobody has committed to goes when expired offsets are looked for, and its generations begin anew.
        let mut world = World::with(GroupConfig {
            offsets_retention_check_interval: std::time::Duration::from_secs(24 * 60 * 60),
            ..GroupConfig::default()
        });
        world.commits = false;
        Run {
            world,
            processes: vec![Process::default(); PROCESSES],
            generation: 0,
            leaders: BTreeMap::new(),
            acknowledged: -1,
            commits: Vec::new(),
            next_offset: 0,
        }
    }

    fn instance(at: usize) -> Option<String> {
        (at >= PROCESSES - 2).then(|| format!("instance-{at}"))
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Join(at) if self.processes[at].asked.is_none() => {
                let id = self.processes[at].member_id.clone();
                let group_instance_id = Run::instance(at).map(Into::into);
                let request = JoinGroupRequest {
                    group_instance_id,
                    ..join("g", &id)
                };
                self.processes[at].asked = Some(self.world.send(9, request));
            }
            Step::Sync(at) if self.processes[at].asked.is_none() => {
                if let Some(member) = self.processes[at].member.clone() {
                    let ids: Vec<String> = self.processes.iter().map(|process| process.member_id.clone()).collect();
                    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
                    let assigned: &[&str] = if member.leads { &ids } else { &[] };
                    self.processes[at].asked = Some(self.world.send(5, sync(&member, assigned)));
                }
            }
            Step::Heartbeat(at) => {
                if let Some(member) = self.processes[at].member.clone() {
                    let answer = self.world.call(4, heartbeat(&member));
                    let GroupResponse::Heartbeat(answer) = answer else {
                        panic!("no answer to a heartbeat")
                    };
                    self.obey(at, error(answer.error_code));
                }
            }
            Step::Leave(at) => {
                if let Some(member) = self.processes[at].member.take() {
                    let leaving = MemberIdentity {
                        member_id: (&*member.id).into(),
                        ..MemberIdentity::default()
                    };
                    let members = vec![leaving];
                    self.world.send(
                        5,
                        LeaveGroupRequest {
                            group_id: "g".into(),
                            members,
                            ..Default::default()
                        },
                    );
                    self.processes[at].member_id.clear();
                }
            }
            Step::Commit(at) => {
                if let Some(member) = self.processes[at].member.clone() {
                    self.next_offset += 1;
                    let token = self.world.send(9, member_commit(&member, 0, self.next_offset));
                    self.commits.push((token, self.next_offset));
                }
            }
            Step::SimpleCommit => {
                self.next_offset += 1;
                let token = self.world.send(9, simple_commit("g", 0, self.next_offset));
                self.commits.push((token, self.next_offset));
            }
            Step::Delete => self.delete(),
            Step::Restart(at) => self.processes[at] = Process::default(),
            Step::Pass(millis) => self.world.pass(millis),
            Step::Append => self.world.append_all(),
            Step::Commits => {
                self.world.append_all();
                self.world.commit_written();
            }
            Step::Fails => {
                self.world.fail_all(ErrorCode::NotEnoughReplicas);
                // A group whose first record or deletion was among the failures begins anew or is back.
                self.generation = 0;
                self.leaders.clear();
            }
            Step::FailOver => self.fail_over(),
            Step::Resign => {
                let mut effects = Vec::new();
                self.world.shard.resign(ErrorCode::NotCoordinator, &mut effects);
                self.world.take(effects);
                assert!(
                    self.world.waiting.is_empty(),
                    "whoever waits is answered by a shard that resigns"
                );
                self.hear();
                self.fail_over();
            }
            Step::Join(_) | Step::Sync(_) => {}
        }
        self.hear();
        self.check();
    }

    /// An offset goes with its group, also one that is still on its way.
    fn delete(&mut self) {
        if self.world.state("g") == "Empty" {
            self.acknowledged = -1;
            self.commits.clear();
        }
        let groups_names = vec!["g".into()];
        self.world.send(
            3,
            DeleteGroupsRequest {
                groups_names,
                ..Default::default()
            },
        );
    }

    /// Generations that were told and not stored are told again by the next coordinator.
    fn fail_over(&mut self) {
        self.world.fail_over();
        self.generation = 0;
        self.leaders.clear();
        self.commits.clear();
        for process in &mut self.processes {
            process.asked = None;
        }
    }

    fn obey(&mut self, at: usize, told: ErrorCode) {
        match told {
            ErrorCode::UnknownMemberId | ErrorCode::FencedInstanceId => {
                self.processes[at].member = None;
                self.processes[at].member_id.clear();
            }
            ErrorCode::IllegalGeneration => self.processes[at].member = None,
            _ => {}
        }
    }

    /// The processes take in the answers that have come.
    fn hear(&mut self) {
        for at in 0..PROCESSES {
            let Some(token) = self.processes[at].asked else {
                continue;
            };
            match self.world.answers.remove(&token) {
                None => continue,
                Some(GroupResponse::JoinGroup(joined)) if joined.error_code == 0 => {
                    let mut member = Member::of("g", &joined);
                    member.instance = Run::instance(at);
                    self.processes[at].member_id = member.id.clone();
                    self.heard_of_generation(&member, &joined.leader, joined.skip_assignment);
                    self.processes[at].member = Some(member);
                }
                Some(GroupResponse::JoinGroup(joined)) if error(joined.error_code) == ErrorCode::MemberIdRequired => {
                    self.processes[at].member_id = joined.member_id.to_string();
                }
                Some(GroupResponse::JoinGroup(joined)) => self.obey(at, error(joined.error_code)),
                Some(GroupResponse::SyncGroup(synced)) if synced.error_code == 0 => {
                    let own = self.processes[at].member_id.as_bytes();
                    let stated =
                        Run::instance(at).is_some() || synced.assignment.is_empty() || synced.assignment == own;
                    assert!(stated, "a member was given what is another's");
                }
                Some(GroupResponse::SyncGroup(synced)) => self.obey(at, error(synced.error_code)),
                Some(other) => panic!("{other:?} is no answer to a join or sync"),
            }
            self.processes[at].asked = None;
        }
        let world = &mut self.world;
        self.commits
            .retain(|(token, offset)| match world.answers.remove(token) {
                Some(GroupResponse::OffsetCommit(response)) => {
                    if crate::world::commit_error(&response) == ErrorCode::None {
                        self.acknowledged = self.acknowledged.max(*offset);
                    }
                    false
                }
                _ => true,
            });
    }

    fn heard_of_generation(&mut self, member: &Member, leader: &str, skips: bool) {
        assert!(member.generation >= self.generation, "a generation never goes back");
        self.generation = member.generation;
        let known = self
            .leaders
            .entry(member.generation)
            .or_insert_with(|| leader.to_owned());
        // A static leader that restarts leads under a new id.
        let restarted = leader.starts_with("instance-") || known.starts_with("instance-");
        assert!(*known == leader || skips || restarted, "one leader a generation");
    }

    fn check(&mut self) {
        let offset = self.world.offset("g", 0);
        assert!(
            offset >= self.acknowledged,
            "{offset} is behind the acknowledged {}",
            self.acknowledged
        );
        let group = self.world.described("g");
        if group.group_state == "Dead" {
            // The next group of that name is another.
            self.generation = 0;
            self.leaders.clear();
        }
        let mut instances: Vec<_> = group
            .members
            .iter()
            .filter_map(|member| member.group_instance_id.clone())
            .collect();
        instances.sort();
        instances.dedup();
        let statics = group
            .members
            .iter()
            .filter(|member| member.group_instance_id.is_some())
            .count();
        assert_eq!(instances.len(), statics, "an instance has one member");
    }

    /// When all goes well again, all that wait are answered and a group of all processes becomes stable.
    fn heal(&mut self) {
        self.world.commits = true;
        self.world.append_all();
        self.world.commit_written();
        for _ in 0..8 {
            self.hear();
            for at in 0..PROCESSES {
                self.step(&Step::Join(at));
            }
            self.world.pass(61_000);
            self.hear();
        }
        for at in 0..PROCESSES {
            self.step(&Step::Join(at));
        }
        for _ in 0..7 {
            self.world.pass(10_000);
        }
        self.hear();
        self.world.pass(400_000);
        assert!(
            self.world.waiting.is_empty(),
            "{:?} were never answered",
            self.world.waiting
        );
        let state = self.world.state("g");
        assert!(state == "Empty" || state == "Dead", "who is silent is out: {state}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_leaders_generations_offsets_and_answers_are_right(
        steps in proptest::collection::vec(step(), 1..120),
    ) {
        let mut run = Run::new();
        for step in &steps {
            run.step(step);
        }
        run.heal();
    }

    #[test]
    fn a_coordinator_that_takes_over_knows_all_that_was_committed(
        steps in proptest::collection::vec(step(), 1..80),
    ) {
        let mut run = Run::new();
        for step in &steps {
            run.step(step);
        }
        run.world.append_all();
        run.world.commit_written();
        let offset = run.world.offset("g", 0);
        run.world.fail_over();
        prop_assert_eq!(run.world.offset("g", 0), offset);
    }
}
