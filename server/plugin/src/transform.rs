//! Rows in, rows out, no state between them: filter, map, flat-map, route (`transforming`).

use crate::batch::Batch;
use crate::columns::{self, ColumnsError};
use crate::error::CallError;
use crate::output::{OutputBounds, OutputRow};

/// What became of one row: the rows it turned into, or why it goes to the dead-letter topic.
pub type Transformed = Result<Vec<OutputRow>, String>;

/// Turns each row into none, one or several.
pub trait Transform: Send {
    /// One answer a row, in order. An output row's origin is the row that it came from, whatever it says itself.
    ///
    /// # Errors
    /// If the plugin asks for a retry, gives up, or ends without a sound answer.
    fn transform(&mut self, rows: &Batch) -> Result<Vec<Transformed>, CallError>;
}

/// One answer a row, each for outputs that are there.
///
/// # Errors
/// If the answers do not fit the batch or the outputs.
pub fn check_transformed(answers: &[Transformed], bounds: OutputBounds) -> Result<(), ColumnsError> {
    columns::check_length("records", answers.len(), bounds.origins as usize)?;
    for (row, outputs) in answers.iter().enumerate() {
        for output in outputs.iter().flatten() {
            if output.output >= bounds.outputs {
                let (value, limit) = (i64::from(output.output), i64::from(bounds.outputs));
                return Err(ColumnsError::Range {
                    column: "outputs",
                    row,
                    value,
                    limit,
                });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_to_an_output_that_is_not_there_is_refused() {
        let bounds = OutputBounds { outputs: 1, origins: 2 };
        let to = |output| OutputRow {
            output,
            ..OutputRow::default()
        };
        assert_eq!(check_transformed(&[Ok(vec![to(0)]), Err("bad".into())], bounds), Ok(()));
        assert!(check_transformed(&[Ok(vec![to(0)]), Ok(vec![to(1)])], bounds).is_err());
        assert!(check_transformed(&[Ok(vec![])], bounds).is_err());
    }
}
