//! Rows of one input partition, as columns over one arena (`types.batch` of the interface).
//!
//! A [`Batch`] is always sound: it was built by [`BatchBuilder`] or its columns were checked. So a row's view needs no
//! error, and the columns can be handed to a guest as they are. Offsets grow from row to row.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use model::{Offset, PartitionIndex, Timestamp};

use crate::columns::{self, ARENA_BYTES_MAX, ColumnsError, NULL, ROWS_MAX};

/// The columns of a batch before they have been checked; the field's meanings are those of the interface.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct BatchColumns {
    /// Which of the task's inputs, from 0.
    pub input: u32,
    pub partition: u32,
    pub base_offset: i64,
    /// One a row: the row count is this column's length.
    pub offset_deltas: Vec<u32>,
    /// Milliseconds since 1970; one a row.
    pub timestamps: Vec<i64>,
    /// Key and value: 4 a row.
    pub spans: Vec<u32>,
    /// Empty, or rows + 1 prefix sums.
    pub header_index: Vec<u32>,
    /// Name and value: 4 a header.
    pub header_spans: Vec<u32>,
    pub arena: Bytes,
}

/// Rows of one partition of one input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    columns: BatchColumns,
}

impl Batch {
    /// # Errors
    /// If the columns disagree about the row count, a span leaves the arena, or the offsets do not grow.
    pub fn from_columns(columns: BatchColumns) -> Result<Self, ColumnsError> {
        let rows = columns.offset_deltas.len();
        columns::check_limit("rows", rows, ROWS_MAX)?;
        columns::check_length("timestamps", columns.timestamps.len(), rows)?;
        columns::check_length("spans", columns.spans.len(), 4 * rows)?;
        columns::check_spans("spans", &columns.spans, &columns.arena)?;
        columns::check_headers(rows, &columns.header_index, &columns.header_spans, &columns.arena)?;
        if PartitionIndex::from_wire(i32::try_from(columns.partition).unwrap_or(-1)).is_none() {
            let value = i64::from(columns.partition);
            return Err(ColumnsError::Range {
                column: "partition",
                row: 0,
                value,
                limit: i64::from(i32::MAX),
            });
        }
        let room = i64::MAX - i64::from(u32::MAX);
        if !(0..=room).contains(&columns.base_offset) {
            let value = columns.base_offset;
            return Err(ColumnsError::Range {
                column: "base-offset",
                row: 0,
                value,
                limit: room,
            });
        }
        match columns.offset_deltas.windows(2).position(|pair| pair[0] >= pair[1]) {
            Some(row) => {
                let (value, limit) = (
                    i64::from(columns.offset_deltas[row + 1]),
                    i64::from(columns.offset_deltas[row]),
                );
                Err(ColumnsError::Range {
                    column: "offset-deltas",
                    row: row + 1,
                    value,
                    limit,
                })
            }
            None => Ok(Batch { columns }),
        }
    }

    #[must_use]
    pub fn columns(&self) -> &BatchColumns {
        &self.columns
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.columns.offset_deltas.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.columns.offset_deltas.is_empty()
    }

    #[must_use]
    pub fn input(&self) -> u32 {
        self.columns.input
    }

    #[must_use]
    pub fn partition(&self) -> PartitionIndex {
        PartitionIndex::new(i32::try_from(self.columns.partition).expect("checked when the batch was made"))
    }

    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn row(&self, index: usize) -> Row<'_> {
        assert!(index < self.len(), "row {index} of a batch of {}", self.len());
        Row {
            columns: &self.columns,
            index,
        }
    }

    pub fn rows(&self) -> impl ExactSizeIterator<Item = Row<'_>> {
        (0..self.len()).map(|index| Row {
            columns: &self.columns,
            index,
        })
    }

    /// The rows of `range` as a batch of their own, with only their bytes in its arena.
    ///
    /// # Panics
    /// If `range` leaves the batch.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Batch {
        if range == (0..self.len()) {
            return self.clone();
        }
        let base = range
            .clone()
            .next()
            .map_or(Offset::new(self.columns.base_offset), |first| self.row(first).offset());
        let mut builder = BatchBuilder::new(self.columns.input, self.partition(), base);
        for index in range {
            let row = self.row(index);
            builder
                .push(row.offset(), row.timestamp(), row.key(), row.value(), row.headers())
                .expect("a part of a batch is no larger than the batch");
        }
        builder.finish()
    }
}

/// One row of a batch.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    columns: &'a BatchColumns,
    index: usize,
}

impl<'a> Row<'a> {
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    #[must_use]
    pub fn offset(&self) -> Offset {
        Offset::new(self.columns.base_offset).plus(i64::from(self.columns.offset_deltas[self.index]))
    }

    /// The record's own timestamp; a hostile producer's may be negative.
    #[must_use]
    pub fn timestamp(&self) -> Timestamp {
        Timestamp::from_millis(self.columns.timestamps[self.index])
    }

    #[must_use]
    pub fn key(&self) -> Option<&'a [u8]> {
        columns::bytes_at(&self.columns.spans, 2 * self.index, &self.columns.arena)
    }

    #[must_use]
    pub fn value(&self) -> Option<&'a [u8]> {
        columns::bytes_at(&self.columns.spans, 2 * self.index + 1, &self.columns.arena)
    }

    /// The key as a share of the batch's arena.
    #[must_use]
    pub fn shared_key(&self) -> Option<Bytes> {
        columns::share_at(&self.columns.spans, 2 * self.index, &self.columns.arena)
    }

    /// The value as a share of the batch's arena.
    #[must_use]
    pub fn shared_value(&self) -> Option<Bytes> {
        columns::share_at(&self.columns.spans, 2 * self.index + 1, &self.columns.arena)
    }

    /// Names and values, in order. Names are text on the wire, but nothing checks that before a client reads them.
    pub fn headers(&self) -> impl Iterator<Item = (&'a [u8], Option<&'a [u8]>)> + use<'a> {
        let columns = self.columns;
        let range = match columns.header_index.get(self.index..self.index + 2) {
            Some(sums) => sums[0] as usize..sums[1] as usize,
            None => 0..0,
        };
        range.map(|header| {
            let name = columns::bytes_at(&columns.header_spans, 2 * header, &columns.arena).unwrap_or_default();
            (
                name,
                columns::bytes_at(&columns.header_spans, 2 * header + 1, &columns.arena),
            )
        })
    }
}

/// The row does not fit into this batch: take [`BatchBuilder::finish`] and begin another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the batch is full")]
pub struct BatchFull;

/// Builds a batch row by row, copying each row's bytes into the arena once.
#[derive(Debug)]
pub struct BatchBuilder {
    columns: BatchColumns,
    arena: BytesMut,
}

impl BatchBuilder {
    #[must_use]
    pub fn new(input: u32, partition: PartitionIndex, base_offset: Offset) -> Self {
        let partition = u32::try_from(partition.get()).expect("a partition's number is not negative");
        let columns = BatchColumns {
            input,
            partition,
            base_offset: base_offset.get(),
            ..BatchColumns::default()
        };
        BatchBuilder {
            columns,
            arena: BytesMut::new(),
        }
    }

    /// Number of rows so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.columns.offset_deltas.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.columns.offset_deltas.is_empty()
    }

    /// Bytes of keys, values and headers so far.
    #[must_use]
    pub fn arena_bytes(&self) -> usize {
        self.arena.len()
    }

    /// # Errors
    /// If the batch holds as many rows or bytes as it may, or `offset` lies too far from the base; nothing was added.
    ///
    /// # Panics
    /// If `offset` is not greater than the last row's, or below the base.
    pub fn push<'h>(
        &mut self,
        offset: Offset,
        timestamp: Timestamp,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: impl Iterator<Item = (&'h [u8], Option<&'h [u8]>)>,
    ) -> Result<(), BatchFull> {
        let delta = offset.since(Offset::new(self.columns.base_offset));
        assert!(
            delta >= 0,
            "row {offset} lies below the batch's base {}",
            self.columns.base_offset
        );
        let delta = u32::try_from(delta).map_err(|_| BatchFull)?;
        let last = self.columns.offset_deltas.last();
        assert!(
            last.is_none_or(|last| *last < delta),
            "row {offset} does not follow the last one"
        );
        let headers: Vec<_> = headers.collect();
        let header_bytes: usize = headers
            .iter()
            .map(|(name, value)| name.len() + value.map_or(0, <[u8]>::len))
            .sum();
        let bytes = key.map_or(0, <[u8]>::len) + value.map_or(0, <[u8]>::len) + header_bytes;
        if self.len() == ROWS_MAX || self.arena.len() + bytes > ARENA_BYTES_MAX {
            return Err(BatchFull);
        }
        self.columns.offset_deltas.push(delta);
        self.columns.timestamps.push(timestamp.millis());
        for part in [key, value] {
            let span = self.copy(part);
            self.columns.spans.extend(span);
        }
        self.push_headers(&headers);
        Ok(())
    }

    #[must_use]
    pub fn finish(mut self) -> Batch {
        self.columns.arena = self.arena.freeze();
        debug_assert_eq!(
            Batch::from_columns(self.columns.clone()).err(),
            None,
            "a builder builds what the checks accept"
        );
        Batch { columns: self.columns }
    }

    /// The index is begun by the first row that has a header, with zeroes for the rows before it.
    fn push_headers(&mut self, headers: &[(&[u8], Option<&[u8]>)]) {
        if headers.is_empty() && self.columns.header_index.is_empty() {
            return;
        }
        if self.columns.header_index.is_empty() {
            self.columns.header_index.resize(self.len(), 0);
        }
        for (name, value) in headers {
            for part in [Some(*name), *value] {
                let span = self.copy(part);
                self.columns.header_spans.extend(span);
            }
        }
        let count = u32::try_from(self.columns.header_spans.len() / 4).expect("bounded by the arena and the rows");
        self.columns.header_index.push(count);
    }

    fn copy(&mut self, part: Option<&[u8]>) -> [u32; 2] {
        let Some(bytes) = part else { return [0, NULL] };
        let position = u32::try_from(self.arena.len()).expect("the arena is bounded");
        self.arena.extend_from_slice(bytes);
        [position, u32::try_from(bytes.len()).expect("the arena is bounded")]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Fields = (i64, Option<Vec<u8>>, Option<Vec<u8>>, Vec<(Vec<u8>, Option<Vec<u8>>)>);

    fn any_rows() -> impl Strategy<Value = Vec<Fields>> {
        let bytes = || prop::collection::vec(any::<u8>(), 0..6);
        let headers = prop::collection::vec((bytes(), prop::option::of(bytes())), 0..3);
        prop::collection::vec(
            (
                any::<i64>(),
                prop::option::of(bytes()),
                prop::option::of(bytes()),
                headers,
            ),
            0..12,
        )
    }

    fn build(rows: &[Fields]) -> Batch {
        let mut builder = BatchBuilder::new(0, PartitionIndex::new(3), Offset::new(100));
        for (index, (timestamp, key, value, headers)) in rows.iter().enumerate() {
            builder
                .push(
                    Offset::new(100 + 2 * index as i64),
                    Timestamp::from_millis(*timestamp),
                    key.as_deref(),
                    value.as_deref(),
                    headers.iter().map(|(name, value)| (name.as_slice(), value.as_deref())),
                )
                .unwrap();
        }
        builder.finish()
    }

    fn read(batch: &Batch) -> Vec<Fields> {
        let owned = |part: Option<&[u8]>| part.map(<[u8]>::to_vec);
        batch
            .rows()
            .map(|row| {
                let headers = row
                    .headers()
                    .map(|(name, value)| (name.to_vec(), owned(value)))
                    .collect();
                (row.timestamp().millis(), owned(row.key()), owned(row.value()), headers)
            })
            .collect()
    }

    proptest! {
        #[test]
        fn rows_come_out_as_they_went_in(rows in any_rows()) {
            let batch = build(&rows);
            prop_assert_eq!(read(&batch), rows);
            prop_assert_eq!(Batch::from_columns(batch.columns().clone()), Ok(batch));
        }

        #[test]
        fn a_slice_holds_its_rows_and_only_their_bytes(rows in any_rows(), cut in any::<(usize, usize)>()) {
            let batch = build(&rows);
            let start = cut.0 % (rows.len() + 1);
            let end = start + cut.1 % (rows.len() - start + 1);
            let slice = batch.slice(start..end);
            prop_assert_eq!(read(&slice), &rows[start..end]);
            for (row, whole) in slice.rows().zip(start..end) {
                prop_assert_eq!(row.offset(), batch.row(whole).offset());
            }
            prop_assert!(slice.columns().arena.len() <= batch.columns().arena.len());
        }

        /// Whatever the columns hold: they are refused, or every row can be read.
        #[test]
        fn foreign_columns_are_refused_or_readable(
            rows in any_rows(),
            column in 0..6usize,
            place in any::<usize>(),
            value in prop_oneof![0..40u32, Just(NULL), Just(NULL - 1), any::<u32>()],
            insert: bool,
        ) {
            let mut columns = build(&rows).columns().clone();
            let mut long: Vec<u32>;
            let target = match column {
                0 => &mut columns.offset_deltas,
                1 => &mut columns.spans,
                2 => &mut columns.header_index,
                3 => &mut columns.header_spans,
                4 => { long = vec![value]; columns.timestamps.push(7); &mut long }
                _ => { long = vec![value]; columns.partition = value; columns.base_offset = -1; &mut long }
            };
            let index = place % (target.len() + 1);
            if insert || index == target.len() { target.insert(index, value) } else { target[index] = value }
            if let Ok(batch) = Batch::from_columns(columns) {
                prop_assert_eq!(read(&batch).len(), batch.len());
            }
        }
    }

    #[test]
    fn a_span_past_the_arena_is_named() {
        let mut columns = build(&[(1, Some(b"key".to_vec()), None, vec![])]).columns().clone();
        columns.spans[1] = 4;
        assert_eq!(
            Batch::from_columns(columns).unwrap_err().to_string(),
            "span 0 of spans (position 0, length 4) leaves the arena of 3 bytes"
        );
    }

    #[test]
    fn offsets_that_do_not_grow_are_refused() {
        let mut columns = build(&[(1, None, None, vec![]), (1, None, None, vec![])])
            .columns()
            .clone();
        columns.offset_deltas = vec![1, 1];
        assert!(matches!(
            Batch::from_columns(columns),
            Err(ColumnsError::Range {
                column: "offset-deltas",
                row: 1,
                ..
            })
        ));
    }
}
