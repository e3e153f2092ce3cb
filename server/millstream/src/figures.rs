//! What the broker counts and how far it compacts, as the gateway shows it.

use std::sync::Arc;

use broker::Broker;
use gateway::{Compaction, CompactionBacklog, CompactionRound, CompactionState, Figure, Figures, PartitionCompaction};

/// The figures of disks, of retention, of compaction and of damage, each time as they are.
pub(crate) fn of(broker: &Arc<Broker>) -> Figures {
    let broker = broker.clone();
    Arc::new(move || {
        let cleaner = broker.cleaner_figures();
        let damage = broker.damage_figures();
        let disks = broker.directory_figures();
        let (future_segments, doubted) = broker.retention_figures();
        vec![
            gauge(
                "millstream_log_directories_offline",
                "Log directories that take no records until the node starts anew.",
                disks.offline as f64,
            ),
            gauge(
                "millstream_log_directories_full",
                "Log directories that take no records until there is room.",
                disks.full as f64,
            ),
            gauge(
                "millstream_log_reserve_bytes",
                "Room that the log directories hold back for full disks.",
                disks.reserve_bytes as f64,
            ),
            counter(
                "millstream_log_read_errors_total",
                "Reads of log directories that the disk failed.",
                disks.read_errors,
            ),
            counter(
                "millstream_log_write_errors_total",
                "Writes and syncs of log directories that the disk failed.",
                disks.write_errors,
            ),
            gauge(
                "millstream_retention_future_segments",
                "Segments that are not deleted by age because their records' times lie in the future.",
                future_segments as f64,
            ),
            gauge(
                "millstream_clock_doubted_seconds",
                "How far the wall clock has been set ahead of what retention believes of it.",
                doubted.as_secs_f64(),
            ),
            counter(
                "millstream_cleaner_rounds_total",
                "Rounds of compaction over a partition that came to their end.",
                cleaner.rounds,
            ),
            counter(
                "millstream_cleaner_failures_total",
                "Rounds of compaction that failed.",
                cleaner.failures,
            ),
            counter(
                "millstream_cleaner_read_bytes_total",
                "Bytes of logs that compaction has read.",
                cleaner.bytes_read,
            ),
            counter(
                "millstream_cleaner_written_bytes_total",
                "Bytes of logs that compaction has left of what it wrote anew.",
                cleaner.bytes_written,
            ),
            counter(
                "millstream_cleaner_removed_records_total",
                "Records that compaction has taken out.",
                cleaner.records_removed,
            ),
            gauge(
                "millstream_cleaner_partitions_cleaning",
                "Partitions that are being compacted.",
                cleaner.cleaning as f64,
            ),
            gauge(
                "millstream_cleaner_partitions_uncleanable",
                "Partitions that cannot be compacted and are left alone until the node starts anew.",
                cleaner.uncleanable as f64,
            ),
            gauge(
                "millstream_cleaner_dirty_ratio_max",
                "The greatest dirty share among the compacted partitions, when they were looked at last.",
                cleaner.dirty_ratio_max,
            ),
            gauge(
                "millstream_log_damaged_ranges",
                "Ranges of offsets whose records are damaged on the disk and not served.",
                damage.ranges as f64,
            ),
            gauge(
                "millstream_log_damaged_partitions",
                "Partitions that have such ranges.",
                damage.partitions as f64,
            ),
            counter(
                "millstream_scrub_read_bytes_total",
                "Bytes of logs that were read in search of damage.",
                damage.scrubbed_bytes,
            ),
            counter(
                "millstream_scrub_rounds_total",
                "Searches for damage over all partitions that came to their end.",
                damage.scrub_rounds,
            ),
            counter(
                "millstream_scrub_found_total",
                "Segments in which such a search found damage that was not known.",
                damage.scrub_found,
            ),
        ]
    })
}

/// How far a topic's partitions are compacted, each time as it is.
pub(crate) fn compaction(broker: &Arc<Broker>) -> Compaction {
    let broker = broker.clone();
    Arc::new(move |topic| {
        let progress = broker.compaction(topic);
        progress
            .into_iter()
            .map(|(partition, progress)| (partition, shown(progress)))
            .collect()
    })
}

fn shown(progress: broker::CompactionProgress) -> PartitionCompaction {
    let (state, reason) = match progress.state {
        broker::CompactionState::Idle => (CompactionState::Idle, None),
        broker::CompactionState::Due => (CompactionState::Due, None),
        broker::CompactionState::Cleaning => (CompactionState::Cleaning, None),
        broker::CompactionState::Failed(reason) => (CompactionState::Failed, Some(reason)),
        broker::CompactionState::Uncleanable(reason) => (CompactionState::Uncleanable, Some(reason)),
        broker::CompactionState::Disabled => (CompactionState::Disabled, None),
    };
    PartitionCompaction {
        state,
        reason,
        backlog: progress.backlog.map(|backlog| CompactionBacklog {
            first_dirty: backlog.first_dirty.get(),
            cleanable_end: backlog.end.get(),
            clean_bytes: backlog.clean_bytes,
            dirty_bytes: backlog.cleanable_bytes,
            dirty_ratio: backlog.dirty_ratio(),
            held_back_bytes: backlog.held_back_bytes,
        }),
        last_round: progress.last_round.map(|round| CompactionRound {
            ended: round.ended.millis(),
            duration_ms: u64::try_from(round.duration.as_millis()).unwrap_or(u64::MAX),
            bytes_before: round.bytes_before,
            bytes_after: round.bytes_after,
            records_removed: round.records_removed,
        }),
    }
}

fn counter(name: &'static str, help: &'static str, value: u64) -> Figure {
    Figure {
        name,
        help,
        is_counter: true,
        value: value as f64,
    }
}

fn gauge(name: &'static str, help: &'static str, value: f64) -> Figure {
    Figure {
        name,
        help,
        is_counter: false,
        value,
    }
}
