//! Spans over an arena, and the checks that make foreign ones safe to read.
//!
//! A span is two `u32`: where it begins in the arena and how long it is; the length [`NULL`] says "no bytes", whatever
//! the position. Rows that have headers carry an index of prefix sums: the headers of row `i` are those from
//! `index[i]` up to, not including, `index[i + 1]`, each with a name's span and a value's.
//!
//! ```text
//! spans   | key pos, key len, value pos, value len | key pos, …      4 a row
//! index   | 0 | 2 | 2 | 5 |                                          rows + 1, or nothing at all
//! headers | name pos, name len, value pos, value len | …             4 a header
//! ```

use bytes::Bytes;

/// The length of a span that stands for null, and the index that stands for "none".
pub const NULL: u32 = u32::MAX;

/// Most rows that one batch or one reply may hold.
pub const ROWS_MAX: usize = 1 << 20;

/// Greatest arena, in bytes.
pub const ARENA_BYTES_MAX: usize = 256 << 20;

/// Why columns cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ColumnsError {
    #[error("column {column} has {got} entries where {expected} belong")]
    Length {
        column: &'static str,
        got: usize,
        expected: usize,
    },
    #[error("column {column} has {got} entries, which is no multiple of {unit}")]
    Uneven {
        column: &'static str,
        got: usize,
        unit: usize,
    },
    #[error("span {index} of {column} (position {position}, length {length}) leaves the arena of {arena} bytes")]
    Span {
        column: &'static str,
        index: usize,
        position: u32,
        length: u32,
        arena: usize,
    },
    #[error("header-index does not grow from 0 to the number of headers at entry {0}")]
    HeaderIndex(usize),
    #[error("header {0} has no name")]
    HeaderName(usize),
    #[error("the name of header {0} is not UTF-8")]
    HeaderNameText(usize),
    #[error("entry {row} of {column} is {value}, the limit is {limit}")]
    Range {
        column: &'static str,
        row: usize,
        value: i64,
        limit: i64,
    },
    #[error("{got} {what}, the limit is {limit}")]
    TooMany {
        what: &'static str,
        got: usize,
        limit: usize,
    },
}

pub(crate) fn check_length(column: &'static str, got: usize, expected: usize) -> Result<(), ColumnsError> {
    if got == expected {
        Ok(())
    } else {
        Err(ColumnsError::Length { column, got, expected })
    }
}

/// For columns that may be left out.
pub(crate) fn check_optional_length(column: &'static str, got: usize, expected: usize) -> Result<(), ColumnsError> {
    if got == 0 {
        Ok(())
    } else {
        check_length(column, got, expected)
    }
}

pub(crate) fn check_limit(what: &'static str, got: usize, limit: usize) -> Result<(), ColumnsError> {
    if got <= limit {
        Ok(())
    } else {
        Err(ColumnsError::TooMany { what, got, limit })
    }
}

/// Every span lies inside the arena or is null.
pub(crate) fn check_spans(column: &'static str, spans: &[u32], arena: &[u8]) -> Result<(), ColumnsError> {
    check_limit("bytes in the arena", arena.len(), ARENA_BYTES_MAX)?;
    if !spans.len().is_multiple_of(2) {
        return Err(ColumnsError::Uneven {
            column,
            got: spans.len(),
            unit: 2,
        });
    }
    for (index, span) in spans.chunks_exact(2).enumerate() {
        let (position, length) = (span[0], span[1]);
        let end = u64::from(position) + u64::from(length);
        if length != NULL && end > arena.len() as u64 {
            return Err(ColumnsError::Span {
                column,
                index,
                position,
                length,
                arena: arena.len(),
            });
        }
    }
    Ok(())
}

/// The header columns of `rows` rows: prefix sums that fit the spans, and a name for each header.
pub(crate) fn check_headers(rows: usize, index: &[u32], spans: &[u32], arena: &[u8]) -> Result<(), ColumnsError> {
    if !spans.len().is_multiple_of(4) {
        return Err(ColumnsError::Uneven {
            column: "header-spans",
            got: spans.len(),
            unit: 4,
        });
    }
    let headers = spans.len() / 4;
    if index.is_empty() {
        return check_length("header-spans", headers, 0);
    }
    check_length("header-index", index.len(), rows + 1)?;
    let mut least = 0;
    for (entry, sum) in index.iter().enumerate() {
        let starts_well = entry > 0 || *sum == 0;
        if *sum < least || *sum as usize > headers || !starts_well {
            return Err(ColumnsError::HeaderIndex(entry));
        }
        least = *sum;
    }
    if least as usize != headers {
        return Err(ColumnsError::HeaderIndex(index.len() - 1));
    }
    check_spans("header-spans", spans, arena)?;
    match spans.chunks_exact(4).position(|header| header[1] == NULL) {
        Some(header) => Err(ColumnsError::HeaderName(header)),
        None => Ok(()),
    }
}

/// The bytes of span `index`; null, and what was never checked and lies outside, is `None`.
pub(crate) fn bytes_at<'a>(spans: &[u32], index: usize, arena: &'a [u8]) -> Option<&'a [u8]> {
    let (start, end) = edges(spans, index)?;
    arena.get(start..end)
}

/// The same as a share of the arena: nothing is copied, the arena lives as long as the share.
pub(crate) fn share_at(spans: &[u32], index: usize, arena: &Bytes) -> Option<Bytes> {
    let (start, end) = edges(spans, index)?;
    (end <= arena.len()).then(|| arena.slice(start..end))
}

fn edges(spans: &[u32], index: usize) -> Option<(usize, usize)> {
    let (position, length) = (*spans.get(2 * index)?, *spans.get(2 * index + 1)?);
    (length != NULL).then_some((position as usize, position as usize + length as usize))
}
