//! Snapshots are named by what they hold (KIP-630): all records below an offset, the last of them of an epoch.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use model::{ControllerEpoch, Offset};

/// The identity of a snapshot and, as text, the stem of its file: `00000000000000000069-0000000001`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SnapshotId {
    /// The first offset that is not in it.
    pub end_offset: Offset,
    pub epoch: ControllerEpoch,
}

/// A text that names no snapshot.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not OFFSET-EPOCH with 20 and 10 digits")]
pub struct SnapshotIdError(String);

impl SnapshotId {
    /// What formatting a controller writes. It is never sent to others.
    pub const BOOTSTRAP: SnapshotId = SnapshotId {
        end_offset: Offset::ZERO,
        epoch: ControllerEpoch::ZERO,
    };
    /// The ending of a complete snapshot's file.
    pub const EXTENSION: &str = ".checkpoint";
    /// Added to that while the file is written.
    pub const PART_EXTENSION: &str = ".part";
}

/// The greater one is the newer: first by epoch, then by offset.
impl Ord for SnapshotId {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.epoch, self.end_offset).cmp(&(other.epoch, other.end_offset))
    }
}

impl PartialOrd for SnapshotId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for SnapshotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:020}-{:010}", self.end_offset.get(), self.epoch.get())
    }
}

impl FromStr for SnapshotId {
    type Err = SnapshotIdError;

    fn from_str(text: &str) -> Result<Self, SnapshotIdError> {
        let parse = || {
            let (offset, epoch) = text.split_once('-')?;
            let digits = |part: &str, count| part.len() == count && part.bytes().all(|byte| byte.is_ascii_digit());
            if !digits(offset, 20) || !digits(epoch, 10) {
                return None;
            }
            Some(SnapshotId {
                end_offset: Offset::from_wire(offset.parse().ok()?)?,
                epoch: ControllerEpoch::from_wire(epoch.parse().ok()?)?,
            })
        };
        parse().ok_or_else(|| SnapshotIdError(text.chars().take(64).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_named_as_kafka_names_it() {
        let id = SnapshotId {
            end_offset: Offset::new(69),
            epoch: ControllerEpoch::new(1),
        };
        assert_eq!(id.to_string(), "00000000000000000069-0000000001");
        assert_eq!("00000000000000000069-0000000001".parse(), Ok(id));
        for bad in [
            "",
            "1-1",
            "00000000000000000069-000000000x",
            "99999999999999999999-0000000001",
        ] {
            assert!(bad.parse::<SnapshotId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_later_epoch_is_newer_at_a_lower_offset() {
        let id = |offset, epoch| SnapshotId {
            end_offset: Offset::new(offset),
            epoch: ControllerEpoch::new(epoch),
        };
        assert!(id(5, 2) > id(9, 1));
        assert!(id(6, 2) > id(5, 2));
        assert!(id(1, 1) > SnapshotId::BOOTSTRAP);
    }
}
