//! Rows as they come: columns over one arena, read a row at a time.

use crate::bindings::millstream::plugin::types::Batch;

/// The length of a span that stands for null.
pub(crate) const NULL: u32 = u32::MAX;

/// Rows of one partition. The host has checked the columns, so every span lies in the arena.
pub struct Rows {
    batch: Batch,
}

impl Rows {
    pub(crate) fn new(batch: Batch) -> Self {
        Rows { batch }
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.batch.offset_deltas.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.batch.offset_deltas.is_empty()
    }

    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn row(&self, index: usize) -> Row<'_> {
        assert!(index < self.len(), "row {index} of {}", self.len());
        Row {
            batch: &self.batch,
            index,
        }
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = Row<'_>> {
        (0..self.len()).map(|index| self.row(index))
    }
}

/// One row.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    batch: &'a Batch,
    index: usize,
}

impl<'a> Row<'a> {
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    #[must_use]
    pub fn offset(&self) -> i64 {
        self.batch.base_offset + i64::from(self.batch.offset_deltas[self.index])
    }

    #[must_use]
    pub fn partition(&self) -> u32 {
        self.batch.partition
    }

    /// Milliseconds since 1970, as the record says.
    #[must_use]
    pub fn timestamp(&self) -> i64 {
        self.batch.timestamps[self.index]
    }

    #[must_use]
    pub fn key(&self) -> Option<&'a [u8]> {
        bytes(&self.batch.spans, 2 * self.index, &self.batch.arena)
    }

    #[must_use]
    pub fn value(&self) -> Option<&'a [u8]> {
        bytes(&self.batch.spans, 2 * self.index + 1, &self.batch.arena)
    }

    /// Names and values, in order.
    pub fn headers(&self) -> impl Iterator<Item = (&'a [u8], Option<&'a [u8]>)> + use<'a> {
        let batch = self.batch;
        let range = match batch.header_index.get(self.index..self.index + 2) {
            Some(sums) => sums[0] as usize..sums[1] as usize,
            None => 0..0,
        };
        range.map(|header| {
            let part = |part| bytes(&batch.header_spans, 2 * header + part, &batch.arena);
            (part(0).unwrap_or_default(), part(1))
        })
    }
}

fn bytes<'a>(spans: &[u32], index: usize, arena: &'a [u8]) -> Option<&'a [u8]> {
    let (position, length) = (spans[2 * index], spans[2 * index + 1]);
    (length != NULL).then(|| &arena[position as usize..position as usize + length as usize])
}

/// Appends to an arena; gives the span.
pub(crate) fn append(arena: &mut Vec<u8>, part: Option<&[u8]>) -> [u32; 2] {
    let Some(part) = part else { return [0, NULL] };
    let position = u32::try_from(arena.len()).expect("a guest's memory has 32 bits");
    arena.extend_from_slice(part);
    [
        position,
        u32::try_from(part.len()).expect("a guest's memory has 32 bits"),
    ]
}
