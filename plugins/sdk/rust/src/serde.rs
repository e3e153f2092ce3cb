//! Between a record's bytes and what people and programs read.

use crate::bindings::exports::millstream::plugin::coding;
use crate::plugin::{Adapter, Plugin, with};

/// Which half of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Key,
    Value,
}

/// What a reader or writer of a topic sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Datum {
    /// JSON text.
    Json(String),
    Text(String),
    Raw(Vec<u8>),
}

pub trait Serde: Plugin {
    /// # Errors
    /// A text that says what is wrong with the item.
    fn encode(&mut self, topic: &str, part: Part, item: &Datum) -> Result<Vec<u8>, String>;

    /// # Errors
    /// A text that says what is wrong with the item.
    fn decode(&mut self, topic: &str, part: Part, item: &[u8]) -> Result<Datum, String>;

    /// The JSON schema of what [`Serde::decode`] gives, if there is one.
    fn json_schema(&mut self, _topic: &str, _part: Part) -> Option<String> {
        None
    }
}

impl<P: Serde> coding::Guest for Adapter<P> {
    fn encode(topic: String, part: coding::Part, items: Vec<coding::Datum>) -> Vec<Result<Vec<u8>, String>> {
        let own = |item| match item {
            coding::Datum::Json(text) => Datum::Json(text),
            coding::Datum::Text(text) => Datum::Text(text),
            coding::Datum::Raw(bytes) => Datum::Raw(bytes),
        };
        let part = own_part(part);
        with(|plugin: &mut P| {
            items
                .into_iter()
                .map(|item| plugin.encode(&topic, part, &own(item)))
                .collect()
        })
    }

    fn decode(topic: String, part: coding::Part, items: Vec<Vec<u8>>) -> Vec<Result<coding::Datum, String>> {
        let foreign = |item| match item {
            Datum::Json(text) => coding::Datum::Json(text),
            Datum::Text(text) => coding::Datum::Text(text),
            Datum::Raw(bytes) => coding::Datum::Raw(bytes),
        };
        let part = own_part(part);
        with(|plugin: &mut P| {
            items
                .iter()
                .map(|item| plugin.decode(&topic, part, item).map(foreign))
                .collect()
        })
    }

    fn json_schema(topic: String, part: coding::Part) -> Option<String> {
        with(|plugin: &mut P| plugin.json_schema(&topic, own_part(part)))
    }
}

fn own_part(part: coding::Part) -> Part {
    match part {
        coding::Part::Key => Part::Key,
        coding::Part::Value => Part::Value,
    }
}

/// Makes the library a component of the world `serde`.
#[macro_export]
macro_rules! serde {
    ($plugin:ty) => {
        type MillstreamPlugin = $crate::glue::Adapter<$plugin>;
        $crate::__world!(MillstreamPlugin, SERDE,
            lifecycle __export_millstream_plugin_lifecycle_0_1_0_cabi
            coding __export_millstream_plugin_coding_0_1_0_cabi
        );
    };
}
