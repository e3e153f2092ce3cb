//! Reads a coordinator's partition from its start to the high watermark and replays it.

use coordinator::pending::{PendingTransactions, TooManyPending};
use coordinator::{GroupShard, Record, Shard, shard::ReplayError, shard::Replayed};
use model::record_batch::{Batch, BatchError, Batches, ControlType, DecompressionLimit, RecordReader};
use model::{ErrorCode, Offset};
use storage::{DamagedRange, Wait};
use tracing::{debug, error, info};

use crate::errors::Refusal;
use crate::partitions::Partition;

/// How much of the log is held in memory at a time.
const READ_BYTES: usize = 1 << 20;

/// Why a partition's groups cannot be served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    #[error("reading the log at offset {offset}: {code}")]
    Read { offset: i64, code: model::ErrorCode },
    #[error("a batch at offset {offset} cannot be opened")]
    Batch {
        offset: i64,
        #[source]
        source: BatchError,
    },
    #[error("a record of the batch at offset {offset} cannot be replayed")]
    Replay {
        offset: i64,
        #[source]
        source: ReplayError,
    },
    #[error("the batch at offset {offset} cannot be held back until its transaction ends")]
    Pending {
        offset: i64,
        #[source]
        source: TooManyPending,
    },
}

/// The damage that a read was refused for.
fn damaged(partition: &Partition, refusal: &Refusal, offset: Offset) -> Option<DamagedRange> {
    if refusal.code != ErrorCode::CorruptMessage {
        return None;
    }
    let damage = partition.damage();
    damage
        .iter()
        .find(|range| range.from <= offset && offset < range.to)
        .copied()
}

/// Gives the shard back as the log has it. Blocks for as long as the disk takes.
pub(crate) fn load(partition: &Partition, shard: GroupShard) -> Result<GroupShard, LoadError> {
    let mut from = partition.ends().log_start_offset;
    let end = partition.ends().high_watermark;
    let mut loading = Loading {
        shard,
        pending: PendingTransactions::default(),
        replayed: 0,
    };
    while from < end {
        let read = |refusal: Refusal| LoadError::Read {
            offset: from.get(),
            code: refusal.code,
        };
        let slice = partition.read(from, READ_BYTES, true, Wait::Allowed);
        let damage = slice
            .as_ref()
            .err()
            .and_then(|refusal| damaged(partition, refusal, from));
        if let Some(range) = damage {
            // The groups go on with what the rest says: what was committed in there is as if it had not been.
            let (topic, partition) = (partition.topic(), partition.index());
            error!(%topic, %partition, from = %range.from, to = %range.to, "offsets in damaged records are lost");
            from = range.to;
            continue;
        }
        let slice = slice.map_err(read)?;
        if slice.records.is_empty() {
            break;
        }
        for batch in Batches::new(&slice.records) {
            let batch = batch.map_err(|source| LoadError::Batch {
                offset: from.get(),
                source,
            })?;
            from = batch.header.next_offset();
            loading.batch(batch)?;
        }
    }
    let (replayed, pending) = (loading.replayed, loading.pending.len());
    if replayed > 0 || pending > 0 {
        info!(partition = %partition.index(), records = replayed, pending, "groups loaded");
    }
    Ok(loading.shard)
}

struct Loading {
    shard: GroupShard,
    /// Offsets that consumers committed within transactions, in a log that Kafka wrote.
    pending: PendingTransactions,
    replayed: u64,
}

impl Loading {
    fn batch(&mut self, batch: Batch<'_>) -> Result<(), LoadError> {
        let header = batch.header;
        let offset = header.base_offset;
        let error = |source| LoadError::Batch { offset, source };
        let transaction = header.producer_id().filter(|_| header.attributes.is_transactional());
        let mut records = RecordReader::new(batch, DecompressionLimit::DEFAULT).map_err(error)?;
        while let Some(view) = records.next_record().map_err(error)? {
            let Some(key) = view.key else { continue };
            if header.attributes.is_control() {
                let commits = match ControlType::from_key(key) {
                    Some(ControlType::Commit) => true,
                    Some(ControlType::Abort) => false,
                    _ => continue,
                };
                for record in transaction.map(|id| self.pending.end(id, commits)).unwrap_or_default() {
                    self.replay(&record, offset)?;
                }
                continue;
            }
            let at = view.offset;
            let record = Record {
                key: bytes::Bytes::copy_from_slice(key),
                value: view.value.map(bytes::Bytes::copy_from_slice),
            };
            let counts = self.pending.record(transaction, at, record);
            let counts = counts.map_err(|source| LoadError::Pending { offset, source })?;
            if let Some(record) = counts {
                self.replay(&record, offset)?;
            }
        }
        Ok(())
    }

    fn replay(&mut self, record: &Record, offset: i64) -> Result<(), LoadError> {
        match self
            .shard
            .replay(record)
            .map_err(|source| LoadError::Replay { offset, source })?
        {
            Replayed::Applied => self.replayed += 1,
            Replayed::Unknown { record_type } => debug!(offset, record_type, "record of an unknown type"),
        }
        Ok(())
    }
}
