//! Rows that a plugin gives out during a call (`output` of the interface), checked as they come.
//!
//! An [`Output`] belongs to one call: if the call fails, it is thrown away with everything in it.

use std::borrow::Cow;

use bytes::Bytes;
use model::{PartitionIndex, Timestamp};

use crate::columns::{self, ColumnsError, NULL, ROWS_MAX};

/// Most bytes that one call may give out.
pub const OUTPUT_BYTES_MAX: usize = 64 << 20;

/// The columns of emitted rows before they have been checked.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct RowsColumns {
    /// Which output each row is for; nothing: all for the first.
    pub outputs: Vec<u32>,
    /// The partition of each row, −1 or nothing: by key.
    pub partitions: Vec<i32>,
    /// The timestamp of each row; nothing: that of its origin.
    pub timestamps: Vec<i64>,
    /// What each row was made from (an input row; for a window aggregator a firing), [`NULL`] for none.
    pub origins: Vec<u32>,
    /// Key and value: 4 a row. Its length says how many rows there are.
    pub spans: Vec<u32>,
    pub header_index: Vec<u32>,
    pub header_spans: Vec<u32>,
    pub arena: Bytes,
}

/// What the rows of one call may refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputBounds {
    /// Number of outputs that the deployment has.
    pub outputs: u32,
    /// Number of input rows, or of firings.
    pub origins: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    pub name: Cow<'static, str>,
    pub value: Option<Bytes>,
}

/// One row given out. `None` for the timestamp means the origin's, for the partition the choice by key.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct OutputRow {
    pub output: u32,
    pub partition: Option<PartitionIndex>,
    pub timestamp: Option<Timestamp>,
    pub origin: Option<u32>,
    pub key: Option<Bytes>,
    pub value: Option<Bytes>,
    pub headers: Vec<Header>,
}

impl OutputRow {
    /// Bytes of key, value and headers.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        let length = |part: &Option<Bytes>| part.as_ref().map_or(0, Bytes::len);
        let headers: usize = self
            .headers
            .iter()
            .map(|header| header.name.len() + length(&header.value))
            .sum();
        length(&self.key) + length(&self.value) + headers
    }
}

/// Where a plugin puts the rows of one call.
#[derive(Debug)]
pub struct Output {
    bounds: OutputBounds,
    rows: Vec<OutputRow>,
    size_bytes: usize,
}

impl Output {
    #[must_use]
    pub fn new(bounds: OutputBounds) -> Self {
        Output {
            bounds,
            rows: Vec::new(),
            size_bytes: 0,
        }
    }

    /// Takes a guest's columns. Keys and values stay shares of their arena.
    ///
    /// # Errors
    /// If the columns are unsound or refer to outputs or origins that are not there; nothing of them was taken.
    pub fn emit(&mut self, columns: &RowsColumns) -> Result<(), ColumnsError> {
        let rows = columns.spans.len() / 4;
        columns::check_limit("rows", rows, ROWS_MAX)?;
        columns::check_length("spans", columns.spans.len(), 4 * rows)?;
        columns::check_optional_length("outputs", columns.outputs.len(), rows)?;
        columns::check_optional_length("partitions", columns.partitions.len(), rows)?;
        columns::check_optional_length("timestamps", columns.timestamps.len(), rows)?;
        columns::check_optional_length("origins", columns.origins.len(), rows)?;
        columns::check_spans("spans", &columns.spans, &columns.arena)?;
        columns::check_headers(rows, &columns.header_index, &columns.header_spans, &columns.arena)?;
        let rows = (0..rows)
            .map(|row| self.read(columns, row))
            .collect::<Result<Vec<_>, _>>()?;
        self.add(rows)
    }

    /// Takes one row of a native plugin.
    ///
    /// # Errors
    /// If the row refers to an output or an origin that is not there, or the call has given out as much as it may.
    pub fn send(&mut self, row: OutputRow) -> Result<(), ColumnsError> {
        self.check_output(0, row.output)?;
        if let Some(origin) = row.origin {
            self.check_origin(0, origin)?;
        }
        self.add(vec![row])
    }

    #[must_use]
    pub fn rows(&self) -> &[OutputRow] {
        &self.rows
    }

    #[must_use]
    pub fn into_rows(self) -> Vec<OutputRow> {
        self.rows
    }

    /// What has been given out so far, to be handed on; the same call may go on giving out from nothing.
    #[must_use]
    pub fn take(&mut self) -> Output {
        std::mem::replace(self, Output::new(self.bounds))
    }

    fn add(&mut self, rows: Vec<OutputRow>) -> Result<(), ColumnsError> {
        let size_bytes = self.size_bytes + rows.iter().map(OutputRow::size_bytes).sum::<usize>();
        columns::check_limit("rows in one call", self.rows.len() + rows.len(), ROWS_MAX)?;
        columns::check_limit("bytes in one call", size_bytes, OUTPUT_BYTES_MAX)?;
        self.size_bytes = size_bytes;
        self.rows.extend(rows);
        Ok(())
    }

    fn check_output(&self, row: usize, output: u32) -> Result<(), ColumnsError> {
        below("outputs", row, output, self.bounds.outputs)
    }

    fn check_origin(&self, row: usize, origin: u32) -> Result<(), ColumnsError> {
        below("origins", row, origin, self.bounds.origins)
    }

    fn read(&self, columns: &RowsColumns, row: usize) -> Result<OutputRow, ColumnsError> {
        let output = columns.outputs.get(row).copied().unwrap_or(0);
        self.check_output(row, output)?;
        let origin = columns.origins.get(row).copied().filter(|origin| *origin != NULL);
        if let Some(origin) = origin {
            self.check_origin(row, origin)?;
        }
        let partition = columns.partitions.get(row).copied().unwrap_or(-1);
        let timestamp = columns.timestamps.get(row).copied();
        for (column, value, least) in [
            ("partitions", Some(i64::from(partition)), -1),
            ("timestamps", timestamp, 0),
        ] {
            if let Some(value) = value.filter(|value| *value < least) {
                return Err(ColumnsError::Range {
                    column,
                    row,
                    value,
                    limit: least,
                });
            }
        }
        Ok(OutputRow {
            output,
            partition: PartitionIndex::from_wire(partition),
            timestamp: timestamp.map(Timestamp::from_millis),
            origin,
            key: columns::share_at(&columns.spans, 2 * row, &columns.arena),
            value: columns::share_at(&columns.spans, 2 * row + 1, &columns.arena),
            headers: headers_at(columns, row)?,
        })
    }
}

fn below(column: &'static str, row: usize, value: u32, limit: u32) -> Result<(), ColumnsError> {
    if value < limit {
        Ok(())
    } else {
        Err(ColumnsError::Range {
            column,
            row,
            value: i64::from(value),
            limit: i64::from(limit),
        })
    }
}

fn headers_at(columns: &RowsColumns, row: usize) -> Result<Vec<Header>, ColumnsError> {
    let Some(sums) = columns.header_index.get(row..row + 2) else {
        return Ok(Vec::new());
    };
    (sums[0] as usize..sums[1] as usize)
        .map(|header| {
            let name = columns::bytes_at(&columns.header_spans, 2 * header, &columns.arena).unwrap_or_default();
            let name = std::str::from_utf8(name).map_err(|_| ColumnsError::HeaderNameText(header))?;
            let value = columns::share_at(&columns.header_spans, 2 * header + 1, &columns.arena);
            Ok(Header {
                name: Cow::Owned(name.to_owned()),
                value,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn output() -> Output {
        Output::new(OutputBounds { outputs: 1, origins: 2 })
    }

    fn two_rows() -> RowsColumns {
        RowsColumns {
            origins: vec![1, NULL],
            spans: vec![0, 1, 1, 2, 0, NULL, 3, 0],
            header_index: vec![0, 0, 1],
            header_spans: vec![0, 1, 2, 1],
            arena: Bytes::from_static(b"abcd"),
            ..RowsColumns::default()
        }
    }

    #[test]
    fn columns_become_rows() {
        let mut output = output();
        output.emit(&two_rows()).unwrap();
        let header = Header {
            name: "a".into(),
            value: Some(Bytes::from_static(b"c")),
        };
        let first = OutputRow {
            origin: Some(1),
            key: Some(Bytes::from_static(b"a")),
            value: Some(Bytes::from_static(b"bc")),
            ..OutputRow::default()
        };
        let second = OutputRow {
            value: Some(Bytes::new()),
            headers: vec![header],
            ..OutputRow::default()
        };
        assert_eq!(output.into_rows(), [first, second]);
    }

    #[test]
    fn references_outside_the_call_are_refused() {
        for columns in [
            RowsColumns {
                origins: vec![2, 0],
                ..two_rows()
            },
            RowsColumns {
                outputs: vec![0, 1],
                ..two_rows()
            },
            RowsColumns {
                partitions: vec![0, -2],
                ..two_rows()
            },
            RowsColumns {
                timestamps: vec![-1, 0],
                ..two_rows()
            },
        ] {
            let mut output = output();
            assert!(
                matches!(output.emit(&columns), Err(ColumnsError::Range { .. })),
                "{columns:?}"
            );
            assert!(output.rows().is_empty());
        }
    }

    proptest! {
        #[test]
        fn foreign_columns_never_panic(
            column in 0..4usize,
            values in prop::collection::vec(prop_oneof![0..6u32, Just(NULL), any::<u32>()], 0..10),
        ) {
            let mut columns = two_rows();
            match column {
                0 => columns.spans = values,
                1 => columns.header_index = values,
                2 => columns.header_spans = values,
                _ => columns.origins = values,
            }
            let _ = output().emit(&columns);
        }
    }
}
