//! What a plugin says of itself at upload, and what it is told at start (`lifecycle` of the interface).

use model::PartitionIndex;

/// One setting that a plugin understands; the deploy form is made of these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    pub name: String,
    pub doc: String,
    pub fallback: Option<String>,
    pub required: bool,
    pub secret: bool,
}

/// A plugin's own description.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Descriptor {
    pub name: String,
    pub version: String,
    pub doc: String,
    pub parameters: Vec<Parameter>,
    pub inputs: Vec<String>,
    pub outputs: Vec<String>,
    pub stores: Vec<String>,
}

/// The task that an instance serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    pub application: String,
    pub processor: String,
    pub version: String,
    pub partition: PartitionIndex,
    pub inputs: Vec<String>,
    pub outputs: Vec<String>,
    pub stores: Vec<String>,
    /// How often the same rows have been tried before.
    pub attempt: u32,
    pub replaying: bool,
}
