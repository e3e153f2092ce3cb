//! Even placement over many seeds.

use super::*;
use crate::controller::tests::Seeded;

fn brokers(racks: &[Option<&str>]) -> Vec<UsableBroker> {
    let ids = 0..;
    ids.zip(racks)
        .map(|(id, rack)| UsableBroker {
            id: BrokerId::new(id),
            rack: rack.map(Text::from),
            fenced: false,
            cordoned: false,
        })
        .collect()
}

fn counts(placed: &[Vec<BrokerId>], leaders_only: bool) -> Vec<usize> {
    let mut counts: BTreeMap<BrokerId, usize> = BTreeMap::new();
    for replicas in placed {
        for id in replicas.iter().take(if leaders_only { 1 } else { replicas.len() }) {
            *counts.entry(*id).or_default() += 1;
        }
    }
    counts.into_values().collect()
}

#[test]
fn ten_partitions_of_three_replicas_on_six_brokers_give_each_five() {
    for seed in 0..200 {
        let placed = place(&brokers(&[None; 6]), 10, 3, &mut Seeded(seed)).unwrap();
        assert_eq!(counts(&placed, false), [5; 6], "seed {seed}");
        for replicas in &placed {
            let mut distinct = replicas.clone();
            distinct.sort();
            distinct.dedup();
            assert_eq!(distinct.len(), 3);
        }
    }
}

#[test]
fn sixteen_partitions_of_three_replicas_on_four_brokers_are_led_by_each_four_times() {
    for seed in 0..200 {
        let placed = place(&brokers(&[None; 4]), 16, 3, &mut Seeded(seed)).unwrap();
        assert_eq!(counts(&placed, false), [12; 4], "seed {seed}");
        assert_eq!(counts(&placed, true), [4; 4], "seed {seed}");
    }
}

#[test]
fn replicas_of_a_partition_are_on_different_racks() {
    let racks = [Some("a"), Some("a"), Some("b"), Some("b"), Some("c"), Some("c")];
    let members = brokers(&racks);
    for replicas in place(&members, 50, 3, &mut Seeded(3)).unwrap() {
        let mut used: Vec<_> = replicas
            .iter()
            .map(|id| racks[usize::try_from(id.get()).unwrap()])
            .collect();
        used.sort();
        assert_eq!(used, [Some("a"), Some("b"), Some("c")]);
    }
}

#[test]
fn fenced_brokers_take_replicas_only_when_needed_and_never_the_lead() {
    let mut members = brokers(&[None; 3]);
    members[1].fenced = true;
    for replicas in place(&members, 20, 2, &mut Seeded(1)).unwrap() {
        assert!(!replicas.contains(&BrokerId::new(1)));
    }
    for replicas in place(&members, 20, 3, &mut Seeded(1)).unwrap() {
        assert_ne!(replicas[0], BrokerId::new(1));
    }
    members.iter_mut().for_each(|broker| broker.fenced = true);
    assert_eq!(
        place(&members, 1, 1, &mut Seeded(1)),
        Err(PlacementError::NoUnfencedBroker)
    );
}

#[test]
fn more_replicas_than_brokers_cannot_be_placed() {
    let error = place(&brokers(&[None; 3]), 1, 4, &mut Seeded(1)).unwrap_err();
    let text = "The target replication factor of 4 cannot be reached because only 3 broker(s) are registered";
    assert!(error.to_string().starts_with(text), "{error}");
}
