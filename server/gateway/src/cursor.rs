//! Where a reader stands in several partitions, as one short text: `next` of a JSON answer, and the id of a streamed event.
//!
//! ```text
//!   5,7,0        partition 0 at offset 5, 1 at 7, 2 at 0
//!   3:9          partition 3 at offset 9
//!   1:4,8,5:0    partition 1 at 4, 2 at 8, 5 at 0
//! ```
//! A number without a partition belongs to the one after the last. Readers hand the text back as they got it.

use std::collections::BTreeMap;
use std::fmt::Write;

use model::{Offset, PartitionIndex};

/// How many partitions one read may span.
pub(crate) const PARTITIONS_MAX: usize = 1000;

/// The next offset of each partition.
pub(crate) type Positions = BTreeMap<PartitionIndex, Offset>;

pub(crate) fn write(positions: &Positions) -> String {
    let mut text = String::with_capacity(positions.len() * 8);
    let mut expected = 0;
    for (partition, offset) in positions {
        if !text.is_empty() {
            text.push(',');
        }
        if partition.get() != expected {
            let _ = write!(text, "{partition}:");
        }
        let _ = write!(text, "{offset}");
        expected = partition.get().saturating_add(1);
    }
    text
}

/// `None` if the text is none of ours.
pub(crate) fn read(text: &str) -> Option<Positions> {
    let mut positions = Positions::new();
    let mut expected = Some(0);
    for part in text.split(',') {
        let (partition, offset) = match part.split_once(':') {
            Some((partition, offset)) => (number(partition)?, offset),
            None => (expected?, part),
        };
        let partition = i32::try_from(partition).ok()?;
        let offset = Offset::from_wire(number(offset)?)?;
        let is_new = positions
            .insert(PartitionIndex::from_wire(partition)?, offset)
            .is_none();
        if !is_new || positions.len() > PARTITIONS_MAX {
            return None;
        }
        expected = partition.checked_add(1).map(i64::from);
    }
    Some(positions)
}

/// Digits only: no sign, no blank.
fn number(text: &str) -> Option<i64> {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn positions(rows: &[(i32, i64)]) -> Positions {
        rows.iter()
            .map(|(partition, offset)| (PartitionIndex::new(*partition), Offset::new(*offset)))
            .collect()
    }

    #[test]
    fn positions_survive_their_text() {
        let cases = [
            (positions(&[(0, 5), (1, 7), (2, 0)]), "5,7,0"),
            (positions(&[(3, 9)]), "3:9"),
            (positions(&[(1, 4), (2, 8), (5, 0)]), "1:4,8,5:0"),
            (positions(&[(i32::MAX, i64::MAX)]), "2147483647:9223372036854775807"),
        ];
        for (positions, text) in cases {
            assert_eq!(write(&positions), text);
            assert_eq!(read(text), Some(positions));
        }
    }

    #[test]
    fn other_texts_are_refused() {
        let many = vec!["1"; PARTITIONS_MAX + 1].join(",");
        for text in [
            "",
            ",",
            "a",
            "-1",
            "1:",
            ":1",
            "1:2:3",
            "0:1,0:2",
            "+1",
            " 1",
            "9223372036854775808",
            "2147483648:0",
            "2147483647:0,1",
            &many,
        ] {
            assert_eq!(read(text), None, "{text:.40}");
        }
    }
}
