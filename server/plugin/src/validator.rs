//! Refuses records before they are appended (`validation`); the producer sees which, and why (KIP-467).

use crate::batch::Batch;
use crate::columns::ColumnsError;
use crate::error::{Rejection, Trap};
use crate::keying;

/// Says which rows may not enter a topic.
pub trait Validator: Send {
    /// # Errors
    /// If the plugin ends without a sound answer.
    fn validate(&mut self, topic: &str, rows: &Batch) -> Result<Vec<Rejection>, Trap>;
}

/// Every rejection names a row of the batch.
///
/// # Errors
/// If one does not.
pub fn check_rejections(rejections: &[Rejection], rows: usize) -> Result<(), ColumnsError> {
    keying::check_rejections(rejections, rows)
}
