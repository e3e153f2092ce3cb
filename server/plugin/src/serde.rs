//! Between a record's bytes and what people and programs read (`coding`).

use bytes::Bytes;

use crate::columns::{self, ColumnsError};
use crate::error::Trap;

/// Which half of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Key,
    Value,
}

/// What a reader or writer of a topic sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Datum {
    /// JSON text. The plugin's word is not taken for it: who embeds it checks that it is JSON.
    Json(String),
    Text(String),
    Raw(Bytes),
}

/// Encodes on produce, decodes on read. Both answer one result an item, in order; a text says what is wrong with that one.
pub trait Serde: Send {
    /// # Errors
    /// If the plugin ends without a sound answer.
    fn encode(&mut self, topic: &str, part: Part, items: &[Datum]) -> Result<Vec<Result<Bytes, String>>, Trap>;

    /// # Errors
    /// If the plugin ends without a sound answer.
    fn decode(&mut self, topic: &str, part: Part, items: &[Bytes]) -> Result<Vec<Result<Datum, String>>, Trap>;

    /// The JSON schema of what [`Serde::decode`] gives, if there is one.
    ///
    /// # Errors
    /// If the plugin ends without a sound answer.
    fn json_schema(&mut self, topic: &str, part: Part) -> Result<Option<String>, Trap>;
}

/// One answer an item.
///
/// # Errors
/// If there are more or fewer.
pub fn check_items(answers: usize, items: usize) -> Result<(), ColumnsError> {
    columns::check_length("items", answers, items)
}
