//! Scripts: inputs, and the effects that they had.

use model::Uuid;

use super::*;
use crate::{Voter, VoterEndpoint};

fn key(id: i32) -> ReplicaKey {
    ReplicaKey {
        id: BrokerId::new(id),
        directory: Uuid::from_bytes([7; 16]),
    }
}

fn voters(ids: &[i32]) -> VoterSet {
    VoterSet::new(ids.iter().map(|id| Voter {
        key: key(*id),
        endpoints: vec![VoterEndpoint {
            name: "CONTROLLER".into(),
            host: "127.0.0.1".into(),
            port: 9093,
        }],
        kraft_versions: (0, 1),
    }))
}

fn fresh() -> Start {
    Start {
        node: key(1),
        quorum_state: QuorumState::default(),
        kraft_version: KRaftVersion::Dynamic,
        voters: voters(&[1]),
        voters_source: VoterSetSource::Bootstrap,
        log_end: Offset::ZERO,
        last_epoch: ControllerEpoch::ZERO,
    }
}

/// A script's lines: each input, then the effects it had.
#[derive(Default)]
struct Script(String);

impl Script {
    fn step(&mut self, input: &str, run: impl FnOnce(&mut Vec<Effect>)) {
        let mut effects = Vec::new();
        run(&mut effects);
        self.0.push_str(&format!("{input}\n"));
        for effect in effects {
            let line = match effect {
                Effect::AppendControl { epoch, records } => {
                    let types: Vec<i16> = records.iter().map(|record| record.control_type()).collect();
                    format!("AppendControl {{ epoch: {epoch}, types: {types:?} }}")
                }
                other => format!("{other:?}"),
            };
            self.0.push_str(&format!("  {line}\n"));
        }
    }
}

#[test]
fn a_fresh_voter_elects_itself_and_leads_once_its_epoch_start_is_synced() {
    let mut script = Script::default();
    let mut raft = None;
    script.step("start", |effects| raft = Some(Raft::start(fresh(), effects).unwrap()));
    let mut raft = raft.unwrap();
    assert_eq!(raft.append_epoch(), Err(NotLeader));
    let epoch = raft.epoch();
    script.step("quorum state saved", |effects| {
        raft.on_quorum_state_saved(epoch, effects)
    });
    script.step("quorum state saved", |effects| {
        raft.on_quorum_state_saved(epoch, effects)
    });
    script.step("appended to 3", |effects| raft.on_appended(Offset::new(3), effects));
    assert_eq!(raft.high_watermark(), None);
    script.step("synced to 2", |effects| raft.on_synced(Offset::new(2), effects));
    script.step("synced to 3", |effects| raft.on_synced(Offset::new(3), effects));
    script.step("appended to 12", |effects| raft.on_appended(Offset::new(12), effects));
    script.step("synced to 12", |effects| raft.on_synced(Offset::new(12), effects));
    script.step("synced to 12", |effects| raft.on_synced(Offset::new(12), effects));
    script.step("shutdown", |effects| raft.on_shutdown(effects));
    script.step("synced to 12", |effects| raft.on_synced(Offset::new(12), effects));
    insta::assert_snapshot!(script.0, @r"
    start
      SaveQuorumState(QuorumState { epoch: 1, leader: None, voted: Some((1, Some(BwcHBwcHBwcHBwcHBwcHBw))) })
    quorum state saved
      SaveQuorumState(QuorumState { epoch: 1, leader: Some(1), voted: None })
      AppendControl { epoch: 1, types: [2, 5, 6] }
    quorum state saved
    appended to 3
      Sync
    synced to 2
    synced to 3
      AdvanceHighWatermark(3)
      Lead { epoch: 1 }
    appended to 12
      Sync
    synced to 12
      AdvanceHighWatermark(12)
    synced to 12
    shutdown
      Resign { epoch: 1 }
    synced to 12
    ");
}

#[test]
fn a_restart_raises_the_epoch_and_writes_a_leader_change_only() {
    let start = Start {
        quorum_state: QuorumState {
            epoch: ControllerEpoch::new(4),
            leader: Some(BrokerId::new(1)),
            voted: None,
        },
        voters_source: VoterSetSource::Log(Offset::new(2)),
        log_end: Offset::new(90),
        last_epoch: ControllerEpoch::new(4),
        ..fresh()
    };
    let mut effects = Vec::new();
    let mut raft = Raft::start(start, &mut effects).unwrap();
    raft.on_quorum_state_saved(ControllerEpoch::new(5), &mut effects);
    assert_eq!(raft.append_epoch(), Ok(ControllerEpoch::new(5)));
    // What an earlier epoch synced is not committed by itself.
    raft.on_synced(Offset::new(90), &mut effects);
    assert_eq!(raft.high_watermark(), None);
    let Some(Effect::AppendControl { records, .. }) = effects.last() else {
        panic!("{effects:?}")
    };
    assert_eq!(records.len(), 1);
}

#[test]
fn a_crash_between_vote_and_leadership_does_not_reuse_the_epoch() {
    let mut effects = Vec::new();
    Raft::start(fresh(), &mut effects).unwrap();
    let Some(Effect::SaveQuorumState(voted)) = effects.first().cloned() else {
        panic!("{effects:?}")
    };
    let again = Start {
        quorum_state: voted.clone(),
        ..fresh()
    };
    let raft = Raft::start(again, &mut effects).unwrap();
    assert!(raft.epoch() > voted.epoch);
}

#[test]
fn a_voter_set_with_other_voters_is_refused() {
    let others = Start {
        voters: voters(&[1, 2]),
        ..fresh()
    };
    let error = Raft::start(others, &mut Vec::new()).unwrap_err();
    assert!(error.to_string().contains("more than the one voter 1:"), "{error}");
    let elsewhere = Start {
        node: key(3),
        ..fresh()
    };
    assert!(matches!(
        Raft::start(elsewhere, &mut Vec::new()),
        Err(StartError::NotAVoter { .. })
    ));
    let wiped = ReplicaKey {
        directory: Uuid::from_bytes([8; 16]),
        ..key(1)
    };
    let wiped = Start { node: wiped, ..fresh() };
    assert!(matches!(
        Raft::start(wiped, &mut Vec::new()),
        Err(StartError::NotAVoter { .. })
    ));
}

#[test]
fn a_quorum_state_older_than_the_log_is_refused() {
    let start = Start {
        last_epoch: ControllerEpoch::new(1),
        log_end: Offset::new(3),
        ..fresh()
    };
    assert!(matches!(
        Raft::start(start, &mut Vec::new()),
        Err(StartError::EpochBehindLog { .. })
    ));
}
