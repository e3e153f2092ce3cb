//! What can be wrong with the files of a log: each fault with what it means and what to do about it.

use std::fmt;
use std::path::PathBuf;

use model::record_batch::BatchError;
use model::{LeaderEpoch, Offset, ProducerId};

use super::batch_file::Unreadable;

/// How bad a fault is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Severity {
    /// Nothing is wrong with the log: something lies about.
    Leftover,
    /// The log is whole, something beside it is not and can be made anew from it.
    Repairable,
    /// Records are damaged or missing.
    Damage,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Leftover => "leftover",
            Severity::Repairable => "repairable",
            Severity::Damage => "damage",
        })
    }
}

/// A fault and where it is.
#[derive(Clone, PartialEq, Debug)]
pub struct Finding {
    pub path: PathBuf,
    /// The first byte in the file.
    pub position: Option<u64>,
    /// The offsets it concerns: the first, and the one after the last.
    pub offsets: Option<(Offset, Offset)>,
    pub fault: Fault,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Fault {
    #[error("the batch's checksum is wrong")]
    Checksum,
    #[error("{bytes} bytes are no batch: {reason}")]
    Unreadable { bytes: u64, reason: Unreadable },
    #[error("the last {bytes} bytes are no whole batch")]
    TornTail { bytes: u64 },
    #[error("the batch begins at an offset below {expected}, where the log had come to")]
    OffsetsGoBack { expected: Offset },
    #[error("the batch was not written at this offset")]
    OffsetMoved,
    #[error("{count} offsets are not there")]
    OffsetGap { count: i64 },
    #[error("the records in the batch cannot be read: {0}")]
    Records(BatchError),
    #[error("the batch is too large to look into")]
    TooLargeToRead,
    #[error("the leader epoch goes back from {before} to {found}")]
    EpochGoesBack { before: LeaderEpoch, found: LeaderEpoch },
    #[error("the log ends at offset {end}, but everything below {recorded} was recorded as being on the disk")]
    EndBelowRecoveryPoint { end: Offset, recorded: Offset },

    #[error("the file is missing")]
    IndexMissing,
    #[error("the index has no entry for a log of {log_bytes} bytes")]
    IndexEmpty { log_bytes: u64 },
    #[error("the size of the file, {bytes} bytes, is not a multiple of {entry_bytes}")]
    IndexSize { bytes: u64, entry_bytes: usize },
    #[error("entry {entry} is not above the one before it")]
    IndexOrder { entry: u64 },
    #[error("entry {entry} points behind the end of the log")]
    IndexBeyondLog { entry: u64 },
    #[error(
        "entry {entry} says position {position} for offset {offset}, which is not where the batch is that ends there"
    )]
    OffsetIndexEntry { entry: u64, offset: Offset, position: u32 },
    #[error(
        "entry {entry} says that timestamp {timestamp} is the greatest up to offset {offset}, the log says otherwise"
    )]
    TimeIndexEntry { entry: u64, offset: Offset, timestamp: i64 },
    #[error("the last entry is not the greatest timestamp of the segment, {timestamp}")]
    TimeIndexIncomplete { timestamp: i64 },
    #[error("entry {entry} is no aborted transaction of this segment")]
    TransactionIndexEntry { entry: u64 },
    #[error("the list of where batches begin is damaged, or of another segment")]
    Bases,

    #[error("the producer snapshot cannot be read: {0}")]
    SnapshotUnreadable(String),
    #[error("the producer snapshot is of an offset above the log's end, {end}")]
    SnapshotAboveEnd { end: Offset },
    #[error("the producer snapshot and the log do not say the same of producer {producer}")]
    SnapshotDiffers { producer: ProducerId },

    #[error("the leader epochs cannot be read, or do not ascend")]
    EpochsMalformed,
    #[error("the file is missing, and the log has leader epochs")]
    EpochsMissing,
    #[error("the batch is of leader epoch {found}, {listed} is listed for its offset")]
    EpochNotListed { found: LeaderEpoch, listed: ListedEpoch },
    #[error("leader epoch {epoch} begins above the log's end, {end}")]
    EpochAboveEnd { epoch: LeaderEpoch, end: Offset },

    #[error("{0}")]
    CheckpointMalformed(String),
    #[error("the log start offset {recorded} lies above the log's end, {end}")]
    LogStartAboveEnd { recorded: Offset, end: Offset },
    #[error("the high watermark {recorded} lies above the log's end, {end}")]
    HighWatermarkAboveEnd { recorded: Offset, end: Offset },
    #[error("the log is recorded as compacted up to {recorded}, above its end, {end}")]
    CleanedAboveEnd { recorded: Offset, end: Offset },
    #[error("{0}")]
    MetaProperties(String),
    #[error("the topic's id cannot be read")]
    PartitionMetadata,

    #[error("the file was on its way out of the log")]
    DeletedFile,
    #[error("the file is of a compaction that did not end")]
    CleanedFile,
    #[error("the file is of a compaction that was being put into the log")]
    SwapFile,
    #[error("the file was being written to replace another")]
    TemporaryFile,
    #[error("the index belongs to no segment")]
    OrphanIndex,
    #[error("the partition was deleted")]
    DeletedFolder,
    #[error("the partition is not in the cluster's metadata")]
    StrayFolder,
    #[error("the replica was being moved from another directory")]
    FutureFolder,

    #[error("the file cannot be read: {0}")]
    Io(String),
}

/// The epoch that the checkpoint lists for an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListedEpoch(pub Option<LeaderEpoch>);

impl fmt::Display for ListedEpoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(epoch) => epoch.fmt(f),
            None => f.write_str("none"),
        }
    }
}

const REBUILD: &str = "millstream log rebuild-index makes it anew";
const NEXT_START: &str = "The next start of the node sees to it";

impl Fault {
    /// A name for programs.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Fault::Checksum => "checksum",
            Fault::Unreadable { .. } => "unreadable",
            Fault::TornTail { .. } => "torn-tail",
            Fault::OffsetsGoBack { .. } => "offsets-go-back",
            Fault::OffsetMoved => "offset-moved",
            Fault::OffsetGap { .. } => "offset-gap",
            Fault::Records(_) => "records",
            Fault::TooLargeToRead => "too-large-to-read",
            Fault::EpochGoesBack { .. } => "epoch-goes-back",
            Fault::EndBelowRecoveryPoint { .. } => "end-below-recovery-point",
            Fault::IndexMissing => "index-missing",
            Fault::IndexEmpty { .. } => "index-empty",
            Fault::IndexSize { .. } => "index-size",
            Fault::IndexOrder { .. } => "index-order",
            Fault::IndexBeyondLog { .. } => "index-beyond-log",
            Fault::OffsetIndexEntry { .. } => "offset-index-entry",
            Fault::TimeIndexEntry { .. } => "time-index-entry",
            Fault::TimeIndexIncomplete { .. } => "time-index-incomplete",
            Fault::TransactionIndexEntry { .. } => "transaction-index-entry",
            Fault::Bases => "bases",
            Fault::SnapshotUnreadable(_) => "snapshot-unreadable",
            Fault::SnapshotAboveEnd { .. } => "snapshot-above-end",
            Fault::SnapshotDiffers { .. } => "snapshot-differs",
            Fault::EpochsMalformed => "epochs-malformed",
            Fault::EpochsMissing => "epochs-missing",
            Fault::EpochNotListed { .. } => "epoch-not-listed",
            Fault::EpochAboveEnd { .. } => "epoch-above-end",
            Fault::CheckpointMalformed(_) => "checkpoint-malformed",
            Fault::LogStartAboveEnd { .. } => "log-start-above-end",
            Fault::HighWatermarkAboveEnd { .. } => "high-watermark-above-end",
            Fault::CleanedAboveEnd { .. } => "cleaned-above-end",
            Fault::MetaProperties(_) => "meta-properties",
            Fault::PartitionMetadata => "partition-metadata",
            Fault::DeletedFile => "deleted-file",
            Fault::CleanedFile => "cleaned-file",
            Fault::SwapFile => "swap-file",
            Fault::TemporaryFile => "temporary-file",
            Fault::OrphanIndex => "orphan-index",
            Fault::DeletedFolder => "deleted-folder",
            Fault::StrayFolder => "stray-folder",
            Fault::FutureFolder => "future-folder",
            Fault::Io(_) => "io",
        }
    }

    #[must_use]
    pub fn severity(&self) -> Severity {
        match self {
            Fault::Checksum
            | Fault::Unreadable { .. }
            | Fault::OffsetsGoBack { .. }
            | Fault::OffsetMoved
            | Fault::OffsetGap { .. }
            | Fault::Records(_)
            | Fault::TooLargeToRead
            | Fault::EpochGoesBack { .. }
            | Fault::EndBelowRecoveryPoint { .. }
            | Fault::LogStartAboveEnd { .. }
            | Fault::HighWatermarkAboveEnd { .. }
            | Fault::MetaProperties(_)
            | Fault::PartitionMetadata
            | Fault::Io(_) => Severity::Damage,
            Fault::DeletedFile
            | Fault::CleanedFile
            | Fault::SwapFile
            | Fault::TemporaryFile
            | Fault::OrphanIndex
            | Fault::DeletedFolder
            | Fault::StrayFolder
            | Fault::FutureFolder => Severity::Leftover,
            _ => Severity::Repairable,
        }
    }

    /// What it means, in a sentence.
    #[must_use]
    pub fn meaning(&self) -> &'static str {
        match self {
            Fault::Checksum | Fault::Unreadable { .. } => {
                "The bytes changed after they were written: these records are lost on this disk"
            }
            Fault::TornTail { .. } => {
                "A crash has cut a write short: nothing of it was acknowledged as being on the disk"
            }
            Fault::OffsetsGoBack { .. } => {
                "The base offset lies outside of the checksum and is wrong, or the same offsets were written twice"
            }
            Fault::OffsetMoved => "The base offset lies outside of the checksum and is wrong",
            Fault::OffsetGap { .. } => {
                "Records are missing between two batches; only in a compacted log is that as it should be"
            }
            Fault::Records(_) => "The bytes are as the producer sent them, but they are no records",
            Fault::TooLargeToRead => "The checksum is right, the records were not looked at",
            Fault::EpochGoesBack { .. } => {
                "The leader epoch lies outside of the checksum and is wrong, or a replica has two histories"
            }
            Fault::EndBelowRecoveryPoint { .. } => "The end of the log is gone: files were removed or replaced",
            Fault::IndexMissing
            | Fault::IndexEmpty { .. }
            | Fault::IndexSize { .. }
            | Fault::IndexOrder { .. }
            | Fault::IndexBeyondLog { .. }
            | Fault::OffsetIndexEntry { .. } => {
                "Nothing is lost: reads take longer, as they find their place in the log"
            }
            Fault::TimeIndexEntry { .. } | Fault::TimeIndexIncomplete { .. } => {
                "Nothing is lost: look-ups by time take longer, and another broker may answer them wrongly"
            }
            Fault::Bases => "Nothing is lost: a batch that is moved within a gap of compaction is not found out",
            Fault::TransactionIndexEntry { .. } => "Nothing is lost: another broker may show aborted records",
            Fault::SnapshotUnreadable(_) | Fault::SnapshotDiffers { .. } => {
                "What is known of idempotent producers may be wrong: repeated batches could be taken for new ones"
            }
            Fault::SnapshotAboveEnd { .. } => "It is of a tail of the log that is gone",
            Fault::EpochsMalformed
            | Fault::EpochsMissing
            | Fault::EpochNotListed { .. }
            | Fault::EpochAboveEnd { .. } => "Replicas compare these epochs to find where they part",
            Fault::CheckpointMalformed(_) => "What it says of all partitions is not known",
            Fault::LogStartAboveEnd { .. } | Fault::HighWatermarkAboveEnd { .. } | Fault::CleanedAboveEnd { .. } => {
                "The checkpoint is of another life of the log, or the end of the log is gone"
            }
            Fault::MetaProperties(_) => "Whose the directory is, is not known: no node starts with it",
            Fault::PartitionMetadata => "Whose the partition is, is not known: no node starts with it",
            Fault::DeletedFile | Fault::CleanedFile | Fault::TemporaryFile | Fault::OrphanIndex => {
                "It takes room and is never read"
            }
            Fault::SwapFile => "A crash came between two steps: the log and what replaces it are both there",
            Fault::DeletedFolder => "It takes room and is never read",
            Fault::StrayFolder => "The node keeps it for you to look at",
            Fault::FutureFolder => "The move had not ended",
            Fault::Io(_) => "The disk or the rights to the file are at fault",
        }
    }

    /// What to do, in a sentence.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        match self {
            Fault::Checksum
            | Fault::Unreadable { .. }
            | Fault::OffsetsGoBack { .. }
            | Fault::OffsetMoved
            | Fault::EpochGoesBack { .. }
            | Fault::EndBelowRecoveryPoint { .. } => {
                "Replace the disk if it is at fault; where another replica is whole, remove this partition's folder and let \
                 it be copied anew, else restore the file from a backup"
            }
            Fault::OffsetGap { .. } => {
                "Compare with another replica; if the topic was ever compacted, nothing is to do"
            }
            Fault::Records(_) => "Consumers stop here: let them seek beyond, or trim the topic up to it",
            Fault::TooLargeToRead => "Read it with a consumer",
            Fault::TornTail { .. } => "Start the node: it cuts the tail off",
            Fault::IndexMissing
            | Fault::IndexEmpty { .. }
            | Fault::IndexSize { .. }
            | Fault::IndexOrder { .. }
            | Fault::IndexBeyondLog { .. }
            | Fault::OffsetIndexEntry { .. }
            | Fault::TimeIndexEntry { .. }
            | Fault::TimeIndexIncomplete { .. }
            | Fault::SnapshotUnreadable(_) => REBUILD,
            Fault::TransactionIndexEntry { .. } => "Remove the file; Apache Kafka makes it anew after an unclean stop",
            Fault::SnapshotDiffers { .. } => {
                "With the node stopped, remove the snapshot; then millstream log rebuild-index makes it anew"
            }
            Fault::SnapshotAboveEnd { .. } | Fault::Bases => "With the node stopped, remove the file",
            Fault::EpochsMalformed | Fault::EpochsMissing => NEXT_START,
            Fault::EpochNotListed { .. } | Fault::EpochAboveEnd { .. } => {
                "With the node stopped, remove leader-epoch-checkpoint: it is made anew from the log"
            }
            Fault::CheckpointMalformed(_) => {
                "With the node stopped, remove the file: the logs are then read whole at the next start. Of the log start \
                 offsets there is no other copy: trim again what had been trimmed"
            }
            Fault::LogStartAboveEnd { .. } | Fault::HighWatermarkAboveEnd { .. } | Fault::CleanedAboveEnd { .. } => {
                "If the partition's files were replaced on purpose, nothing is to do, else restore them"
            }
            Fault::MetaProperties(_) | Fault::PartitionMetadata => "Restore the file from a backup",
            Fault::DeletedFile
            | Fault::CleanedFile
            | Fault::SwapFile
            | Fault::TemporaryFile
            | Fault::OrphanIndex
            | Fault::DeletedFolder
            | Fault::FutureFolder => NEXT_START,
            Fault::StrayFolder => "Move it away or remove it once you know that nobody misses it",
            Fault::Io(_) => "Look at the rights and at the system's log; replace the disk if it is at fault",
        }
    }
}
