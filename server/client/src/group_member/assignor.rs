//! Who reads what: Kafka's range and round-robin assignors, so that a group may mix this client with any other.

use std::collections::{BTreeMap, BTreeSet};

use model::{PartitionIndex, TopicName, TopicPartition};

/// A way to share partitions out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Assignor {
    /// Of each topic, consecutive partitions to each member; the first members get one more where it does not come out
    /// even.
    Range,
    /// Partition by partition, member by member.
    RoundRobin,
}

/// What a member wants to read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Subscription {
    pub(super) member_id: String,
    pub(super) instance_id: Option<String>,
    pub(super) topics: BTreeSet<TopicName>,
}

impl Subscription {
    /// Static members come first, by their instance ids, so that a restart does not move partitions.
    fn rank(&self) -> (bool, &str, &str) {
        match &self.instance_id {
            Some(instance_id) => (false, instance_id, &self.member_id),
            None => (true, "", &self.member_id),
        }
    }
}

pub(super) type Assignment = BTreeMap<String, BTreeSet<TopicPartition>>;

impl Assignor {
    /// The name that members agree on.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Assignor::Range => "range",
            Assignor::RoundRobin => "roundrobin",
        }
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        [Assignor::Range, Assignor::RoundRobin]
            .into_iter()
            .find(|assignor| assignor.name() == name)
    }

    /// Gives every partition of the topics to one member that wants it. Every member has an entry.
    pub(super) fn assign(self, members: &[Subscription], partitions: &BTreeMap<TopicName, i32>) -> Assignment {
        let mut members: Vec<&Subscription> = members.iter().collect();
        members.sort_by(|one, other| one.rank().cmp(&other.rank()));
        let mut assignment: Assignment = members
            .iter()
            .map(|member| (member.member_id.clone(), BTreeSet::new()))
            .collect();
        match self {
            Assignor::Range => assign_ranges(&members, partitions, &mut assignment),
            Assignor::RoundRobin => assign_in_turn(&members, partitions, &mut assignment),
        }
        assignment
    }
}

fn assign_ranges(members: &[&Subscription], partitions: &BTreeMap<TopicName, i32>, assignment: &mut Assignment) {
    for (topic, count) in partitions {
        let readers: Vec<_> = members.iter().filter(|member| member.topics.contains(topic)).collect();
        let Ok(reader_count) = i32::try_from(readers.len()) else {
            continue;
        };
        let (Some(share), Some(extra)) = (count.checked_div(reader_count), count.checked_rem(reader_count)) else {
            continue;
        };
        let mut next = 0;
        for (place, reader) in (0..).zip(readers) {
            let end = next + share + i32::from(place < extra);
            let range = (next..end).filter_map(|index| partition(topic, index));
            assignment.entry(reader.member_id.clone()).or_default().extend(range);
            next = end;
        }
    }
}

fn assign_in_turn(members: &[&Subscription], partitions: &BTreeMap<TopicName, i32>, assignment: &mut Assignment) {
    let mut turn = 0;
    for (topic, count) in partitions {
        if !members.iter().any(|member| member.topics.contains(topic)) {
            continue;
        }
        for index in 0..*count {
            // Some member wants the topic, so this ends within one round.
            while !members[turn % members.len()].topics.contains(topic) {
                turn += 1;
            }
            let reader = members[turn % members.len()];
            turn += 1;
            assignment
                .entry(reader.member_id.clone())
                .or_default()
                .extend(partition(topic, index));
        }
    }
}

fn partition(topic: &TopicName, index: i32) -> Option<TopicPartition> {
    Some(TopicPartition {
        topic: topic.clone(),
        partition: PartitionIndex::from_wire(index)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn topic(name: &str) -> TopicName {
        TopicName::new(name).unwrap()
    }

    fn member(id: &str, topics: &[&str]) -> Subscription {
        let topics = topics.iter().map(|name| topic(name)).collect();
        Subscription {
            member_id: id.to_owned(),
            instance_id: None,
            topics,
        }
    }

    fn shown(assignment: &Assignment) -> Vec<(String, String)> {
        let list = |partitions: &BTreeSet<TopicPartition>| {
            partitions.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        assignment
            .iter()
            .map(|(member, partitions)| (member.clone(), list(partitions)))
            .collect()
    }

    #[test]
    fn ranges_give_the_first_members_what_is_left_over() {
        let members = [member("b", &["t", "u"]), member("a", &["t", "u"])];
        let partitions = BTreeMap::from([(topic("t"), 3), (topic("u"), 3)]);
        let assignment = Assignor::Range.assign(&members, &partitions);
        assert_eq!(
            shown(&assignment),
            [("a".into(), "t-0 t-1 u-0 u-1".into()), ("b".into(), "t-2 u-2".into())]
        );
    }

    #[test]
    fn turns_pass_over_members_that_do_not_want_the_topic() {
        let members = [member("a", &["t"]), member("b", &["t", "u"]), member("c", &["u"])];
        let partitions = BTreeMap::from([(topic("t"), 3), (topic("u"), 2)]);
        let assignment = Assignor::RoundRobin.assign(&members, &partitions);
        assert_eq!(
            shown(&assignment),
            [
                ("a".into(), "t-0 t-2".into()),
                ("b".into(), "t-1 u-0".into()),
                ("c".into(), "u-1".into())
            ]
        );
    }

    #[test]
    fn a_fifth_member_of_four_partitions_has_none() {
        let members: Vec<_> = ["a", "b", "c", "d", "e"].map(|id| member(id, &["t"])).into();
        for assignor in [Assignor::Range, Assignor::RoundRobin] {
            let assignment = assignor.assign(&members, &BTreeMap::from([(topic("t"), 4)]));
            assert_eq!(
                assignment.values().map(BTreeSet::len).collect::<Vec<_>>(),
                [1, 1, 1, 1, 0]
            );
        }
    }

    #[test]
    fn static_members_are_ranked_by_their_instance() {
        let of = |id: &str, instance: &str| Subscription {
            instance_id: Some(instance.to_owned()),
            ..member(id, &["t"])
        };
        let members = [of("1", "y"), of("2", "x")];
        let assignment = Assignor::Range.assign(&members, &BTreeMap::from([(topic("t"), 1)]));
        assert_eq!(
            shown(&assignment),
            [("1".into(), String::new()), ("2".into(), "t-0".into())]
        );
    }

    proptest! {
        #[test]
        fn each_wanted_partition_has_exactly_one_reader(
            wants in proptest::collection::vec(proptest::collection::btree_set(0..4usize, 0..4), 0..6),
            counts in proptest::collection::vec(0..9i32, 4),
        ) {
            let names = ["t", "u", "v", "w"];
            let members: Vec<_> = wants.iter().enumerate().map(|(at, wanted)| {
                let topics: Vec<&str> = wanted.iter().map(|topic| names[*topic]).collect();
                member(&format!("m{at}"), &topics)
            }).collect();
            let partitions: BTreeMap<_, _> = names.iter().zip(&counts).map(|(name, count)| (topic(name), *count)).collect();
            for assignor in [Assignor::Range, Assignor::RoundRobin] {
                let assignment = assignor.assign(&members, &partitions);
                let mut given: Vec<TopicPartition> = Vec::new();
                for member in &members {
                    for partition in &assignment[&member.member_id] {
                        prop_assert!(member.topics.contains(&partition.topic));
                        given.push(partition.clone());
                    }
                }
                let wanted: usize = names.iter().zip(&counts)
                    .filter(|(name, _)| members.iter().any(|member| member.topics.contains(**name)))
                    .map(|(_, count)| usize::try_from(*count).unwrap()).sum();
                prop_assert_eq!(given.len(), wanted);
                given.sort();
                given.dedup();
                prop_assert_eq!(given.len(), wanted);
            }
        }
    }
}
