//! The `aggregation` export, and `keying` where the component has it.

use bytes::Bytes;
use plugin::host::{InstanceSettings, ModuleError};
use plugin::{
    Accumulated, Batch, CallError, Failure, Firing, FiringReason, Keying, Keys, KeysColumns, Output, Pane, Trap,
    TrapKind, Window, WindowAggregator,
};

use crate::bindings::exports::millstream::plugin::{aggregation, keying};
use crate::bindings::millstream::plugin::types;
use crate::compiled_plugin::CompiledPlugin;
use crate::instance::{self, Instance, Purpose};

pub(crate) struct GuestAggregator {
    instance: Instance<Guest>,
    has_keying: bool,
}

struct Guest {
    aggregation: aggregation::Guest,
    keying: Option<keying::Guest>,
}

impl GuestAggregator {
    /// # Errors
    /// If the instance does not start.
    pub(crate) fn start(
        plugin: &CompiledPlugin,
        settings: InstanceSettings,
        aggregation: &aggregation::GuestIndices,
        keying: Option<&keying::GuestIndices>,
    ) -> Result<Self, ModuleError> {
        let (aggregation, keying) = (aggregation.clone(), keying.cloned());
        let has_keying = keying.is_some();
        let instance = Instance::start(plugin, settings, move |store, instance| {
            let keying = keying.as_ref().map(|keying| keying.load(&mut *store, instance));
            Ok(Guest {
                aggregation: aggregation.load(&mut *store, instance)?,
                keying: keying.transpose()?,
            })
        })?;
        Ok(GuestAggregator { instance, has_keying })
    }
}

impl Keying for GuestAggregator {
    fn assign(&mut self, rows: &Batch) -> Result<Keys, Trap> {
        let purpose = Purpose {
            first_offset: rows.columns().base_offset,
            output: None,
        };
        let (keys, _) = self.instance.call(purpose, |store, guest| match &guest.keying {
            Some(keying) => keying.call_assign(store, instance::batch(rows)).map(Some),
            None => Ok(None),
        })?;
        let keys = keys.ok_or_else(|| Trap::new(TrapKind::Fault, "the component exports no keying"))?;
        let columns = KeysColumns {
            spans: keys.spans,
            timestamps: keys.timestamps,
            arena: keys.arena.into(),
            rejections: instance::rejections(keys.rejections),
        };
        Ok(Keys::from_columns(columns, rows.len())?)
    }
}

impl WindowAggregator for GuestAggregator {
    fn keying(&mut self) -> Option<&mut dyn Keying> {
        if self.has_keying { Some(self) } else { None }
    }

    fn accumulate(&mut self, rows: &Batch, panes: &[Pane]) -> Result<Accumulated, CallError> {
        let purpose = Purpose {
            first_offset: rows.columns().base_offset,
            output: None,
        };
        let guest_panes: Vec<_> = panes.iter().map(pane).collect();
        let (answer, _) = self.instance.call(purpose, |store, guest| {
            guest
                .aggregation
                .call_accumulate(store, instance::batch(rows), &guest_panes)
        })?;
        let answer = answer.map_err(failure)?;
        let accumulated = Accumulated {
            accumulators: answer.accs.into_iter().map(Bytes::from).collect(),
            rejections: instance::rejections(answer.rejections),
        };
        accumulated.check(panes, rows.len())?;
        Ok(accumulated)
    }

    fn merge(&mut self, pairs: &[(Bytes, Bytes)]) -> Result<Vec<Bytes>, Trap> {
        let guest_pairs: Vec<(&[u8], &[u8])> = pairs.iter().map(|(left, right)| (&left[..], &right[..])).collect();
        let (merged, _) = self.instance.call(Purpose::default(), |store, guest| {
            guest.aggregation.call_merge(store, &guest_pairs)
        })?;
        plugin::serde::check_items(merged.len(), pairs.len())?;
        Ok(merged.into_iter().map(Bytes::from).collect())
    }

    fn fire(&mut self, firings: &[Firing], output: &mut Output) -> Result<(), CallError> {
        let purpose = Purpose {
            first_offset: firings.first().map_or(0, |firing| firing.window.start.millis()),
            output: Some(output.take()),
        };
        let guest_firings: Vec<_> = firings.iter().map(firing).collect();
        let (answer, rows) = self.instance.call(purpose, |store, guest| {
            guest.aggregation.call_fire(store, &guest_firings)
        })?;
        answer.map_err(failure)?;
        if let Some(rows) = rows {
            *output = rows;
        }
        Ok(())
    }
}

fn pane(pane: &Pane) -> aggregation::Pane<'_> {
    aggregation::Pane {
        window: window(pane.window),
        key: &pane.key,
        acc: pane.accumulator.as_deref(),
        rows: &pane.rows,
        each: pane.each,
    }
}

fn firing(firing: &Firing) -> aggregation::Firing<'_> {
    aggregation::Firing {
        window: window(firing.window),
        key: &firing.key,
        acc: &firing.accumulator,
        timestamp: firing.timestamp.millis(),
        reason: match firing.reason {
            FiringReason::OnTime => aggregation::Reason::OnTime,
            FiringReason::Early => aggregation::Reason::Early,
            FiringReason::Late => aggregation::Reason::Late,
        },
    }
}

fn window(window: Window) -> aggregation::Window {
    aggregation::Window {
        start: window.start.millis(),
        end: window.end.millis(),
    }
}

fn failure(failure: types::Failure) -> CallError {
    let (types::Failure::Retry(reason) | types::Failure::Fatal(reason)) = &failure;
    let mut short = reason.clone();
    plugin::error::shorten(&mut short);
    CallError::Failure(match failure {
        types::Failure::Retry(_) => Failure::Retry(short),
        types::Failure::Fatal(_) => Failure::Fatal(short),
    })
}
