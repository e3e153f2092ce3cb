//! The `coding` export.

use bytes::Bytes;
use plugin::host::{InstanceSettings, ModuleError};
use plugin::serde::{Datum, Part, check_items};
use plugin::{Serde, Trap};

use crate::bindings::exports::millstream::plugin::coding;
use crate::compiled_plugin::CompiledPlugin;
use crate::instance::{Instance, Purpose};

pub(crate) struct GuestSerde {
    instance: Instance<coding::Guest>,
}

impl GuestSerde {
    /// # Errors
    /// If the instance does not start.
    pub(crate) fn start(
        plugin: &CompiledPlugin,
        settings: InstanceSettings,
        indices: &coding::GuestIndices,
    ) -> Result<Self, ModuleError> {
        let indices = indices.clone();
        let instance = Instance::start(plugin, settings, move |store, instance| indices.load(store, instance))?;
        Ok(GuestSerde { instance })
    }
}

impl Serde for GuestSerde {
    fn encode(&mut self, topic: &str, part: Part, items: &[Datum]) -> Result<Vec<Result<Bytes, String>>, Trap> {
        let guest_items: Vec<_> = items.iter().map(datum).collect();
        let (answer, _) = self.instance.call(Purpose::default(), |store, guest| {
            guest.call_encode(store, topic, guest_part(part), &guest_items)
        })?;
        check_items(answer.len(), items.len())?;
        Ok(answer
            .into_iter()
            .map(|item| item.map(Bytes::from).map_err(short))
            .collect())
    }

    fn decode(&mut self, topic: &str, part: Part, items: &[Bytes]) -> Result<Vec<Result<Datum, String>>, Trap> {
        let guest_items: Vec<&[u8]> = items.iter().map(|item| &item[..]).collect();
        let (answer, _) = self.instance.call(Purpose::default(), |store, guest| {
            guest.call_decode(store, topic, guest_part(part), &guest_items)
        })?;
        check_items(answer.len(), items.len())?;
        Ok(answer
            .into_iter()
            .map(|item| item.map(own_datum).map_err(short))
            .collect())
    }

    fn json_schema(&mut self, topic: &str, part: Part) -> Result<Option<String>, Trap> {
        let (answer, _) = self.instance.call(Purpose::default(), |store, guest| {
            guest.call_json_schema(store, topic, guest_part(part))
        })?;
        Ok(answer)
    }
}

fn guest_part(part: Part) -> coding::Part {
    match part {
        Part::Key => coding::Part::Key,
        Part::Value => coding::Part::Value,
    }
}

fn datum(datum: &Datum) -> coding::DatumParam<'_> {
    match datum {
        Datum::Json(text) => coding::DatumParam::Json(text),
        Datum::Text(text) => coding::DatumParam::Text(text),
        Datum::Raw(bytes) => coding::DatumParam::Raw(bytes),
    }
}

fn own_datum(datum: coding::DatumResult) -> Datum {
    match datum {
        coding::DatumResult::Json(text) => Datum::Json(text),
        coding::DatumResult::Text(text) => Datum::Text(text),
        coding::DatumResult::Raw(bytes) => Datum::Raw(bytes.into()),
    }
}

fn short(mut reason: String) -> String {
    plugin::error::shorten(&mut reason);
    reason
}
