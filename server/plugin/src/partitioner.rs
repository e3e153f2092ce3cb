//! Chooses partitions for rows that are about to be produced (`partitioning`).

use model::{PartitionIndex, TopicName};

use crate::batch::Batch;
use crate::columns::{self, ColumnsError};
use crate::error::Trap;

/// The topic that rows are for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    pub name: TopicName,
    /// How many partitions it has.
    pub partitions: u32,
    /// Those that have no leader at the moment.
    pub offline: Vec<PartitionIndex>,
}

/// Chooses a partition for each row.
pub trait Partitioner: Send {
    /// One answer a row; `None` leaves the choice to the producer.
    ///
    /// # Errors
    /// If the plugin ends without a sound answer.
    fn partition(&mut self, topic: &Topic, rows: &Batch) -> Result<Vec<Option<PartitionIndex>>, Trap>;
}

/// Reads a guest's answer: one number a row, −1 for "no choice".
///
/// # Errors
/// If there are not as many numbers as rows, or one is no partition of the topic.
pub fn check_partitions(
    answer: &[i32],
    topic: &Topic,
    rows: usize,
) -> Result<Vec<Option<PartitionIndex>>, ColumnsError> {
    columns::check_length("partitions", answer.len(), rows)?;
    let choice = |(row, number): (usize, &i32)| match u32::try_from(*number) {
        Ok(partition) if partition < topic.partitions => Ok(PartitionIndex::from_wire(*number)),
        Err(_) if *number == -1 => Ok(None),
        _ => {
            let (value, limit) = (i64::from(*number), i64::from(topic.partitions));
            Err(ColumnsError::Range {
                column: "partitions",
                row,
                value,
                limit,
            })
        }
    };
    answer.iter().enumerate().map(choice).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_partitions_of_the_topic_and_minus_one_are_answers() {
        let topic = Topic {
            name: TopicName::new("t").unwrap(),
            partitions: 3,
            offline: vec![],
        };
        let chosen = check_partitions(&[2, -1, 0], &topic, 3).unwrap();
        assert_eq!(
            chosen,
            [Some(PartitionIndex::new(2)), None, Some(PartitionIndex::new(0))]
        );
        for bad in [[0, 3], [-2, 0], [i32::MIN, 0]] {
            assert!(
                matches!(check_partitions(&bad, &topic, 2), Err(ColumnsError::Range { .. })),
                "{bad:?}"
            );
        }
        assert!(check_partitions(&[0], &topic, 2).is_err());
    }
}
