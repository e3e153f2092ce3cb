//! From records of the input to the batches that plugins take.

use model::record_batch::Record;
use model::{Offset, PartitionIndex};
use plugin::{Batch, BatchBuilder};
use streams::Windows;
use tracing::warn;

/// Most rows of one step: its results are held until they are delivered.
const ROWS_PER_STEP_MAX: usize = 2_000;
/// Most folds (a row into a window) of one step.
const FOLDS_PER_STEP_MAX: usize = 32_768;
/// The one input that a windowed processor has.
const INPUT: u32 = 0;

/// Rows of one step, and the position after them.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) batch: Batch,
    pub(super) next: Offset,
}

/// How many rows a step takes so that neither rows nor folds exceed their limit.
pub(super) fn rows_per_step(windows: &Windows) -> usize {
    (FOLDS_PER_STEP_MAX / windows.per_row_max()).clamp(1, ROWS_PER_STEP_MAX)
}

/// Cuts what was fetched from `position` on into steps; the last one ends at `next`. Offsets, timestamps, nulls and
/// headers stay as they are.
pub(super) fn steps(
    partition: PartitionIndex,
    position: Offset,
    records: Vec<Record>,
    next: Offset,
    rows_max: usize,
) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut builder = BatchBuilder::new(INPUT, partition, position);
    let mut end = position;
    for record in records {
        if record.offset < end {
            // A batch whose offsets do not grow was written by nobody who keeps to the format.
            warn!(%partition, offset = %record.offset, "a record stands before the one it follows: passed over");
            continue;
        }
        let is_full = builder.len() >= rows_max || !push(&mut builder, &record);
        if is_full {
            let full = std::mem::replace(&mut builder, BatchBuilder::new(INPUT, partition, record.offset));
            steps.push(Step {
                batch: full.finish(),
                next: record.offset,
            });
            let fits = push(&mut builder, &record);
            assert!(fits, "a record is smaller than an arena");
        }
        end = record.offset.plus(1);
    }
    let next = next.max(end);
    if next > position {
        steps.push(Step {
            batch: builder.finish(),
            next,
        });
    }
    steps
}

fn push(builder: &mut BatchBuilder, record: &Record) -> bool {
    let headers = record
        .headers
        .iter()
        .map(|header| (&header.key[..], header.value.as_deref()));
    let (key, value) = (record.key.as_deref(), record.value.as_deref());
    builder
        .push(record.offset, record.timestamp, key, value, headers)
        .is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use model::Timestamp;
    use model::record_batch::RecordHeader;

    fn record(offset: i64, key: Option<&'static str>) -> Record {
        Record {
            offset: Offset::new(offset),
            timestamp: Timestamp::from_millis(offset * 10),
            key: key.map(|key| Bytes::from_static(key.as_bytes())),
            value: None,
            headers: vec![RecordHeader {
                key: Bytes::from_static(b"h"),
                value: None,
            }],
        }
    }

    fn cut(position: i64, offsets: &[i64], next: i64, rows_max: usize) -> Vec<(Vec<i64>, i64)> {
        let records = offsets.iter().map(|offset| record(*offset, Some("k"))).collect();
        let partition = PartitionIndex::new(0);
        let steps = steps(partition, Offset::new(position), records, Offset::new(next), rows_max);
        let offsets = |step: &Step| step.batch.rows().map(|row| row.offset().get()).collect();
        steps.iter().map(|step| (offsets(step), step.next.get())).collect()
    }

    #[test]
    fn each_step_ends_where_the_next_begins_and_the_last_where_the_fetch_did() {
        assert_eq!(cut(3, &[3, 5, 9], 12, 2), [(vec![3, 5], 9), (vec![9], 12)]);
        assert_eq!(cut(3, &[], 4, 2), [(vec![], 4)]);
        assert_eq!(cut(3, &[], 3, 2), []);
    }

    #[test]
    fn offsets_that_do_not_grow_are_passed_over() {
        assert_eq!(cut(0, &[0, 5, 5, 2, 6], 4, 10), [(vec![0, 5, 6], 7)]);
    }

    #[test]
    fn nulls_headers_and_times_stay_as_they_are() {
        let records = vec![record(7, None)];
        let steps = steps(PartitionIndex::new(2), Offset::new(7), records, Offset::new(8), 9);
        let row = steps[0].batch.row(0);
        assert_eq!((row.key(), row.value(), row.timestamp().millis()), (None, None, 70));
        assert_eq!(row.headers().collect::<Vec<_>>(), [(&b"h"[..], None)]);
    }
}
