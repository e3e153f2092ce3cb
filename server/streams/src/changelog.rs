//! The bytes of a task's changelog: what a commit appends and a restore reads.
//!
//! A commit is one batch: the progress record first, then the changed panes. Keys sort as bytes in the order in which
//! windows start, so a local store can keep the records as they are and find what is due by a scan from the left. A pane
//! that is done is a tombstone; so the topic can be compacted. Numbers are big-endian.
//!
//! ```text
//! progress  key   | 0x00 |
//!           value | version u8 = 1 | task epoch u32 | position i64 | stream time i64, -1 for none
//!                 | windows u8 (1 tumbling, 2 hopping) | size i64 | advance i64 | grace i64 | emit u8 (1 update, 2 final)
//!                 | processed u64 | late u64 | late rows u64 | null keys u64 | rejected u64 |
//! pane      key   | 0x01 | window start i64 | key … |
//!           value | version u8 = 1 | greatest event time i64 | accumulator … |
//! ```

use bytes::{Buf, BufMut, Bytes, BytesMut};
use model::{Offset, Timestamp};

use crate::emit::Emit;
use crate::task::Counters;
use crate::window::{Hopping, Tumbling, Windows};

const PROGRESS: u8 = 0;
const PANE: u8 = 1;
const VERSION: u8 = 1;
const TUMBLING: u8 = 1;
const HOPPING: u8 = 2;
const UPDATE: u8 = 1;
const FINAL: u8 = 2;

/// How often the task has moved: who writes with a lower epoch than another before has lost the task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct TaskEpoch(u32);

impl TaskEpoch {
    #[must_use]
    pub const fn new(epoch: u32) -> Self {
        TaskEpoch(epoch)
    }

    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// One record of the changelog. A value of `None` is a tombstone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangelogRecord {
    pub key: Bytes,
    pub value: Option<Bytes>,
}

impl ChangelogRecord {
    /// Bytes of key and value, and what a record's frame takes at most.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        const FRAME_BYTES: usize = 32;
        FRAME_BYTES + self.key.len() + self.value.as_ref().map_or(0, Bytes::len)
    }
}

/// What of a changelog cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangelogError {
    #[error("a changelog key of kind {0} is not known to this version")]
    Kind(u8),
    #[error("a changelog value of version {0} is not known to this version")]
    Version(u8),
    #[error("a changelog record of {0} bytes is cut short or too long")]
    Length(usize),
    #[error("a changelog record has no key")]
    NoKey,
    #[error("the progress record is deleted")]
    NoProgress,
    #[error("{field} is {value} in the changelog, which cannot be")]
    Field { field: &'static str, value: i64 },
}

/// What a key stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangelogKey {
    Progress,
    Pane { start: Timestamp, key: Bytes },
}

impl ChangelogKey {
    #[must_use]
    pub fn encode(&self) -> Bytes {
        match self {
            ChangelogKey::Progress => Bytes::from_static(&[PROGRESS]),
            ChangelogKey::Pane { start, key } => pane_key(*start, key),
        }
    }

    /// # Errors
    /// If the bytes are no key of this version's.
    pub fn decode(mut bytes: Bytes) -> Result<Self, ChangelogError> {
        let length = bytes.len();
        match bytes.try_get_u8().map_err(|_| ChangelogError::NoKey)? {
            PROGRESS if bytes.is_empty() => Ok(ChangelogKey::Progress),
            PROGRESS => Err(ChangelogError::Length(length)),
            PANE => {
                let start = bytes.try_get_i64().map_err(|_| ChangelogError::Length(length))?;
                Ok(ChangelogKey::Pane {
                    start: time("window start", start)?,
                    key: bytes,
                })
            }
            kind => Err(ChangelogError::Kind(kind)),
        }
    }
}

/// The key of a pane. As bytes they sort by window start, then by key.
pub(crate) fn pane_key(start: Timestamp, key: &[u8]) -> Bytes {
    let mut bytes = Vec::with_capacity(9 + key.len());
    bytes.put_u8(PANE);
    bytes.put_i64(start.millis());
    bytes.put_slice(key);
    Bytes::from(bytes)
}

/// The least key of the panes that start at `start` or later.
pub(crate) fn pane_bound(start: Timestamp) -> Bytes {
    pane_key(start, &[])
}

/// The value of a pane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaneState {
    /// The greatest event time among the rows in the pane.
    pub timestamp: Timestamp,
    pub accumulator: Bytes,
}

impl PaneState {
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut bytes = Vec::with_capacity(9 + self.accumulator.len());
        bytes.put_u8(VERSION);
        bytes.put_i64(self.timestamp.millis());
        bytes.put_slice(&self.accumulator);
        Bytes::from(bytes)
    }

    /// # Errors
    /// If the bytes are no value of this version's.
    pub fn decode(mut bytes: Bytes) -> Result<Self, ChangelogError> {
        let length = bytes.len();
        version(&mut bytes)?;
        let timestamp = bytes.try_get_i64().map_err(|_| ChangelogError::Length(length))?;
        Ok(PaneState {
            timestamp: time("greatest event time", timestamp)?,
            accumulator: bytes,
        })
    }
}

/// The value of the progress record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    pub epoch: TaskEpoch,
    /// The next row to read.
    pub position: Offset,
    pub stream_time: Option<Timestamp>,
    pub windows: Windows,
    pub grace_ms: i64,
    pub emit: Emit,
    pub counters: Counters,
}

impl Progress {
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut bytes = BytesMut::new();
        bytes.put_u8(VERSION);
        bytes.put_u32(self.epoch.get());
        bytes.put_i64(self.position.get());
        bytes.put_i64(self.stream_time.map_or(-1, Timestamp::millis));
        bytes.put_u8(match self.windows {
            Windows::Tumbling(_) => TUMBLING,
            Windows::Hopping(_) => HOPPING,
        });
        bytes.put_i64(self.windows.size_ms());
        bytes.put_i64(self.windows.advance_ms());
        bytes.put_i64(self.grace_ms);
        bytes.put_u8(match self.emit {
            Emit::Update => UPDATE,
            Emit::Final => FINAL,
        });
        let Counters {
            processed,
            late,
            late_rows,
            null_keys,
            rejected,
        } = self.counters;
        for counter in [processed, late, late_rows, null_keys, rejected] {
            bytes.put_u64(counter);
        }
        bytes.freeze()
    }

    /// # Errors
    /// If the bytes are no value of this version's.
    pub fn decode(mut bytes: Bytes) -> Result<Self, ChangelogError> {
        let length = bytes.len();
        version(&mut bytes)?;
        let progress = Self::decode_fields(&mut bytes).map_err(|error| error.of(length))?;
        if bytes.is_empty() {
            Ok(progress)
        } else {
            Err(ChangelogError::Length(length))
        }
    }

    fn decode_fields(bytes: &mut Bytes) -> Result<Self, FieldError> {
        let epoch = TaskEpoch::new(bytes.try_get_u32()?);
        let position = bytes.try_get_i64()?;
        let stream_time = bytes.try_get_i64()?;
        let kind = bytes.try_get_u8()?;
        let (size_ms, advance_ms) = (bytes.try_get_i64()?, bytes.try_get_i64()?);
        let windows = match kind {
            TUMBLING => Tumbling::new(size_ms).map(Windows::Tumbling),
            HOPPING => Hopping::new(size_ms, advance_ms).map(Windows::Hopping),
            _ => return Err(FieldError::Value("windows", i64::from(kind))),
        };
        let windows = windows.map_err(|_| FieldError::Value("window size", size_ms))?;
        if windows.advance_ms() != advance_ms {
            return Err(FieldError::Value("advance", advance_ms));
        }
        let grace_ms = bytes.try_get_i64()?;
        crate::window::check_grace(grace_ms).map_err(|_| FieldError::Value("grace", grace_ms))?;
        let emit = match bytes.try_get_u8()? {
            UPDATE => Emit::Update,
            FINAL => Emit::Final,
            other => return Err(FieldError::Value("emit", i64::from(other))),
        };
        let counters = Counters {
            processed: bytes.try_get_u64()?,
            late: bytes.try_get_u64()?,
            late_rows: bytes.try_get_u64()?,
            null_keys: bytes.try_get_u64()?,
            rejected: bytes.try_get_u64()?,
        };
        let position = Offset::from_wire(position).ok_or(FieldError::Value("position", position))?;
        let stream_time = match stream_time {
            -1 => None,
            other => Some(time("stream time", other).map_err(|_| FieldError::Value("stream time", other))?),
        };
        Ok(Progress {
            epoch,
            position,
            stream_time,
            windows,
            grace_ms,
            emit,
            counters,
        })
    }
}

enum FieldError {
    Short,
    Value(&'static str, i64),
}

impl FieldError {
    fn of(self, length: usize) -> ChangelogError {
        match self {
            FieldError::Short => ChangelogError::Length(length),
            FieldError::Value(field, value) => ChangelogError::Field { field, value },
        }
    }
}

impl From<bytes::TryGetError> for FieldError {
    fn from(_: bytes::TryGetError) -> Self {
        FieldError::Short
    }
}

fn version(bytes: &mut Bytes) -> Result<(), ChangelogError> {
    match bytes.try_get_u8().map_err(|_| ChangelogError::Length(0))? {
        VERSION => Ok(()),
        other => Err(ChangelogError::Version(other)),
    }
}

fn time(field: &'static str, value: i64) -> Result<Timestamp, ChangelogError> {
    if (0..=crate::window::TIME_MS_MAX).contains(&value) {
        Ok(Timestamp::from_millis(value))
    } else {
        Err(ChangelogError::Field { field, value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_progress() -> impl Strategy<Value = Progress> {
        let windows = prop_oneof![
            (1..1000i64).prop_map(|size| Windows::Tumbling(Tumbling::new(size).unwrap())),
            (1..1000i64, 1..1000i64)
                .prop_map(|(size, advance)| Windows::Hopping(Hopping::new(size, advance.min(size)).unwrap())),
        ];
        let times = (
            any::<u32>(),
            0..i64::MAX,
            prop::option::of(0..1i64 << 60),
            0..1i64 << 60,
        );
        let emit = prop_oneof![Just(Emit::Update), Just(Emit::Final)];
        (times, windows, emit, any::<[u64; 5]>()).prop_map(|(times, windows, emit, counts)| {
            let (epoch, position, stream_time, grace_ms) = times;
            let [processed, late, late_rows, null_keys, rejected] = counts;
            Progress {
                epoch: TaskEpoch::new(epoch),
                position: Offset::new(position),
                stream_time: stream_time.map(Timestamp::from_millis),
                windows,
                grace_ms,
                emit,
                counters: Counters {
                    processed,
                    late,
                    late_rows,
                    null_keys,
                    rejected,
                },
            }
        })
    }

    proptest! {
        #[test]
        fn progress_survives_its_bytes(progress in any_progress()) {
            prop_assert_eq!(Progress::decode(progress.encode()), Ok(progress));
        }

        #[test]
        fn a_pane_survives_its_bytes(start in 0..1i64 << 60, timestamp in 0..1i64 << 60, key: Vec<u8>, accumulator: Vec<u8>) {
            let pane = ChangelogKey::Pane { start: Timestamp::from_millis(start), key: key.into() };
            prop_assert_eq!(ChangelogKey::decode(pane.encode()), Ok(pane));
            let state = PaneState { timestamp: Timestamp::from_millis(timestamp), accumulator: accumulator.into() };
            prop_assert_eq!(PaneState::decode(state.encode()), Ok(state));
        }

        #[test]
        fn keys_sort_by_start_then_by_key(left in (0..500i64, any::<Vec<u8>>()), right in (0..500i64, any::<Vec<u8>>())) {
            let key = |part: &(i64, Vec<u8>)| pane_key(Timestamp::from_millis(part.0), &part.1);
            prop_assert_eq!(key(&left).cmp(&key(&right)), left.cmp(&right));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>, progress in any_progress(), cut in 0..100usize) {
            let _ = ChangelogKey::decode(bytes.clone().into());
            let _ = PaneState::decode(bytes.clone().into());
            let _ = Progress::decode(bytes.into());
            let whole = progress.encode();
            let cut = cut.min(whole.len() - 1);
            prop_assert!(Progress::decode(whole.slice(..cut)).is_err());
        }
    }

    /// These bytes are on disks: they change with a new version only.
    #[test]
    fn the_bytes_of_version_1_stay() {
        let key = pane_key(Timestamp::from_millis(0x0102), b"k");
        assert_eq!(key.as_ref(), [1, 0, 0, 0, 0, 0, 0, 1, 2, b'k']);
        let state = PaneState {
            timestamp: Timestamp::from_millis(3),
            accumulator: Bytes::from_static(b"ab"),
        };
        assert_eq!(state.encode().as_ref(), [1, 0, 0, 0, 0, 0, 0, 0, 3, b'a', b'b']);
        let progress = Progress {
            epoch: TaskEpoch::new(7),
            position: Offset::new(5),
            stream_time: None,
            windows: Windows::Hopping(Hopping::new(6, 2).unwrap()),
            grace_ms: 1,
            emit: Emit::Final,
            counters: Counters {
                processed: 1,
                late: 2,
                late_rows: 3,
                null_keys: 4,
                rejected: 5,
            },
        };
        let number = |value: i64| value.to_be_bytes().to_vec();
        let expected = [
            vec![1, 0, 0, 0, 7],
            number(5),
            number(-1),
            vec![2],
            number(6),
            number(2),
            number(1),
            vec![2],
            number(1),
            number(2),
            number(3),
            number(4),
            number(5),
        ];
        assert_eq!(progress.encode().as_ref(), expected.concat());
    }
}
