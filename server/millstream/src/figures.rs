//! What the broker counts, as the page of metrics shows it.

use std::sync::Arc;

use broker::Broker;
use gateway::{Figure, Figures};

/// The figures of compaction and of damage, each time as they are.
pub(crate) fn of(broker: &Arc<Broker>) -> Figures {
    let broker = broker.clone();
    Arc::new(move || {
        let cleaner = broker.cleaner_figures();
        let damage = broker.damage_figures();
        vec![
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
