//! `schemas`: there is no registry yet, so there is no schema.

use wasmtime::Result;

use super::HostState;
use crate::bindings::millstream::plugin::schemas;

impl schemas::Host for HostState {
    fn by_id(&mut self, _id: u32) -> Result<Option<schemas::Schema>> {
        Ok(None)
    }

    fn latest(&mut self, _subject: String) -> Result<Option<schemas::Schema>> {
        Ok(None)
    }

    fn register(
        &mut self,
        _subject: String,
        _format: String,
        _text: String,
    ) -> Result<std::result::Result<u32, String>> {
        Ok(Err("this node has no schema registry".into()))
    }
}
