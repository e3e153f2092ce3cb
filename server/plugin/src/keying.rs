//! Another key, another time: what a windowed processor may say of each row before windows are assigned (`keying`).

use bytes::Bytes;
use model::Timestamp;

use crate::batch::Batch;
use crate::columns::{self, ColumnsError};
use crate::error::{Rejection, Trap};

/// Gives rows the key they are grouped by, and their event time.
pub trait Keying: Send {
    /// # Errors
    /// If the plugin ends without an answer.
    fn assign(&mut self, rows: &Batch) -> Result<Keys, Trap>;
}

/// The columns of [`Keys`] before they have been checked.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct KeysColumns {
    /// Two a row, or nothing: every row keeps its key.
    pub spans: Vec<u32>,
    /// One a row, or nothing: every row keeps its timestamp.
    pub timestamps: Vec<i64>,
    pub arena: Bytes,
    pub rejections: Vec<Rejection>,
}

/// A key and an event time for each row of one batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    columns: KeysColumns,
}

impl Keys {
    /// # Errors
    /// If the columns are not those of a batch of `rows` rows.
    pub fn from_columns(columns: KeysColumns, rows: usize) -> Result<Self, ColumnsError> {
        columns::check_optional_length("spans", columns.spans.len(), 2 * rows)?;
        columns::check_optional_length("timestamps", columns.timestamps.len(), rows)?;
        columns::check_spans("spans", &columns.spans, &columns.arena)?;
        check_rejections(&columns.rejections, rows)?;
        Ok(Keys { columns })
    }

    /// `None` where the plugin keeps the row's own key, `Some(None)` where it says that the row has none.
    #[must_use]
    pub fn key(&self, row: usize) -> Option<Option<Bytes>> {
        let kept = self.columns.spans.is_empty();
        (!kept).then(|| columns::share_at(&self.columns.spans, row, &self.columns.arena))
    }

    /// `None` where the plugin keeps the row's own timestamp.
    #[must_use]
    pub fn timestamp(&self, row: usize) -> Option<Timestamp> {
        self.columns.timestamps.get(row).copied().map(Timestamp::from_millis)
    }

    #[must_use]
    pub fn rejections(&self) -> &[Rejection] {
        &self.columns.rejections
    }
}

/// Every rejection names a row of the batch, and there are no more of them than windows could make.
pub(crate) fn check_rejections(rejections: &[Rejection], rows: usize) -> Result<(), ColumnsError> {
    columns::check_limit("rejections", rejections.len(), columns::ROWS_MAX)?;
    for (index, rejection) in rejections.iter().enumerate() {
        if rejection.row as usize >= rows {
            let (value, limit) = (i64::from(rejection.row), i64::try_from(rows).unwrap_or(i64::MAX));
            return Err(ColumnsError::Range {
                column: "rejections",
                row: index,
                value,
                limit,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::NULL;

    #[test]
    fn a_null_span_takes_the_key_away_and_no_spans_keep_it() {
        let columns = KeysColumns {
            spans: vec![0, NULL, 0, 2],
            arena: Bytes::from_static(b"ab"),
            ..Default::default()
        };
        let keys = Keys::from_columns(columns, 2).unwrap();
        assert_eq!(keys.key(0), Some(None));
        assert_eq!(keys.key(1), Some(Some(Bytes::from_static(b"ab"))));
        assert_eq!(keys.timestamp(1), None);
        assert_eq!(Keys::from_columns(KeysColumns::default(), 2).unwrap().key(0), None);
    }

    #[test]
    fn a_rejection_of_a_row_that_is_not_there_is_refused() {
        let rejections = vec![Rejection {
            row: 2,
            reason: String::new(),
        }];
        let columns = KeysColumns {
            rejections,
            ..Default::default()
        };
        assert!(matches!(
            Keys::from_columns(columns, 2),
            Err(ColumnsError::Range {
                column: "rejections",
                ..
            })
        ));
    }

    #[test]
    fn columns_of_another_row_count_are_refused() {
        let columns = KeysColumns {
            timestamps: vec![1],
            ..Default::default()
        };
        let expected = ColumnsError::Length {
            column: "timestamps",
            got: 1,
            expected: 2,
        };
        assert_eq!(Keys::from_columns(columns, 2), Err(expected));
    }
}
