//! The `.snapshot` file: all producers as of the offset in its name.
//!
//! ```text
//! version i16 = 1 | crc u32 (CRC-32C of what follows) | count i32 | entries
//! entry = producer id i64 | epoch i16 | last sequence i32 | last offset i64 | offset delta i32 | timestamp i64
//!       | coordinator epoch i32 | first offset of the open transaction i64
//! ```
//! Only the last batch of each producer is kept, as Kafka does: after a restart an older one is out of order.

use super::{BatchRange, Producer, ProducerStates};

const VERSION: i16 = 1;
const PREFIX_BYTES: usize = 6;
const ENTRY_BYTES: usize = 46;
/// No file above this is read: a million producers.
pub(crate) const SNAPSHOT_BYTES_MAX: usize = 64 << 20;

/// Why bytes are no snapshot.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SnapshotError {
    #[error("producer snapshot is cut short or too long")]
    Size,
    #[error("producer snapshot version {0} is not 1")]
    Version(i16),
    #[error("producer snapshot has a wrong checksum")]
    Checksum,
}

impl ProducerStates {
    pub(crate) fn to_snapshot(&self) -> Vec<u8> {
        let mut body = i32::try_from(self.producers.len())
            .unwrap_or(i32::MAX)
            .to_be_bytes()
            .to_vec();
        for (id, producer) in &self.producers {
            let last = producer.batches.back();
            body.extend_from_slice(&id.to_be_bytes());
            body.extend_from_slice(&producer.epoch.to_be_bytes());
            body.extend_from_slice(&last.map_or(-1, |batch| batch.last_sequence).to_be_bytes());
            body.extend_from_slice(&last.map_or(-1, |batch| batch.last_offset).to_be_bytes());
            body.extend_from_slice(&last.map_or(0, |batch| batch.offset_delta).to_be_bytes());
            body.extend_from_slice(&producer.last_timestamp.to_be_bytes());
            body.extend_from_slice(&producer.coordinator_epoch.to_be_bytes());
            body.extend_from_slice(&producer.transaction_first_offset.unwrap_or(-1).to_be_bytes());
        }
        let mut bytes = VERSION.to_be_bytes().to_vec();
        bytes.extend_from_slice(&crc32c::crc32c(&body).to_be_bytes());
        bytes.extend_from_slice(&body);
        bytes
    }

    pub(crate) fn from_snapshot(bytes: &[u8]) -> Result<Self, SnapshotError> {
        let (version, rest) = bytes.split_first_chunk::<2>().ok_or(SnapshotError::Size)?;
        let version = i16::from_be_bytes(*version);
        if version != VERSION {
            return Err(SnapshotError::Version(version));
        }
        let (crc, body) = rest.split_first_chunk::<4>().ok_or(SnapshotError::Size)?;
        if crc32c::crc32c(body) != u32::from_be_bytes(*crc) {
            return Err(SnapshotError::Checksum);
        }
        let (count, body) = body.split_first_chunk::<4>().ok_or(SnapshotError::Size)?;
        let (entries, rest) = body.as_chunks::<ENTRY_BYTES>();
        if !rest.is_empty() || usize::try_from(i32::from_be_bytes(*count)) != Ok(entries.len()) {
            return Err(SnapshotError::Size);
        }
        debug_assert!(bytes.len() >= PREFIX_BYTES);
        let mut states = ProducerStates::default();
        for entry in entries {
            let mut rest = &entry[..];
            let id = i64::from_be_bytes(take(&mut rest)?);
            let epoch = i16::from_be_bytes(take(&mut rest)?);
            let last_sequence = i32::from_be_bytes(take(&mut rest)?);
            let last_offset = i64::from_be_bytes(take(&mut rest)?);
            let offset_delta = i32::from_be_bytes(take(&mut rest)?);
            let timestamp = i64::from_be_bytes(take(&mut rest)?);
            let coordinator_epoch = i32::from_be_bytes(take(&mut rest)?);
            let transaction = i64::from_be_bytes(take(&mut rest)?);
            let batch = BatchRange {
                last_sequence,
                last_offset,
                offset_delta,
                timestamp,
            };
            let producer = Producer {
                epoch,
                batches: (last_sequence >= 0).then_some(batch).into_iter().collect(),
                last_timestamp: timestamp,
                coordinator_epoch,
                transaction_first_offset: (transaction >= 0).then_some(transaction),
            };
            states.producers.insert(id, producer);
        }
        Ok(states)
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], SnapshotError> {
    let (part, after) = rest.split_first_chunk::<N>().ok_or(SnapshotError::Size)?;
    *rest = after;
    Ok(*part)
}
