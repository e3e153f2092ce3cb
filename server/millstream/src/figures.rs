//! What the broker counts, as the page of metrics shows it.

use std::sync::Arc;

use broker::Broker;
use gateway::{Figure, Figures};

/// Compaction's figures, each time as they are.
pub(crate) fn of(broker: &Arc<Broker>) -> Figures {
    let broker = broker.clone();
    Arc::new(move || {
        let cleaner = broker.cleaner_figures();
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
