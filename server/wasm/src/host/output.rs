//! `output`: rows that a plugin gives out while it is asked for results.
//!
//! The rows are checked before the call returns, so a plugin that gives out unsound ones traps at that place.

use std::borrow::Cow;

use model::{PartitionIndex, Timestamp};
use plugin::{Header, Output, OutputRow, RowsColumns};
use wasmtime::Result;
use wasmtime::error::Error;

use super::HostState;
use crate::bindings::millstream::plugin::{output, types};

impl HostState {
    fn output(&mut self) -> Result<&mut Output> {
        let closed = || Error::msg("rows are given out only when the plugin is asked for results (fire)");
        self.call.output.as_mut().ok_or_else(closed)
    }
}

impl output::Host for HostState {
    fn emit(&mut self, rows: output::Rows) -> Result<()> {
        let columns = RowsColumns {
            outputs: rows.outputs,
            partitions: rows.partitions,
            timestamps: rows.timestamps,
            origins: rows.origins,
            spans: rows.spans,
            header_index: rows.header_index,
            header_spans: rows.header_spans,
            arena: rows.arena.into(),
        };
        Ok(self.output()?.emit(&columns)?)
    }

    /// An aggregator gives results, and those are no input rows.
    fn forward(&mut self, _output: u32, _rows: Vec<u32>) -> Result<()> {
        Err(Error::msg("a window aggregator has no input rows to forward"))
    }

    fn send(&mut self, output: u32, partition: Option<u32>, message: types::MessageResult) -> Result<()> {
        let partition = partition.map(|partition| {
            let number = i32::try_from(partition).ok().and_then(PartitionIndex::from_wire);
            number.ok_or_else(|| Error::msg(format!("{partition} is no partition")))
        });
        let headers = message.headers.into_iter().map(|header| Header {
            name: Cow::Owned(header.name),
            value: header.value.map(Into::into),
        });
        let row = OutputRow {
            output,
            partition: partition.transpose()?,
            timestamp: Some(Timestamp::from_millis(message.timestamp)),
            origin: None,
            key: message.key.map(Into::into),
            value: message.value.map(Into::into),
            headers: headers.collect(),
        };
        Ok(self.output()?.send(row)?)
    }
}
