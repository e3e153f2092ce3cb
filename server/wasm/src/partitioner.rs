//! The `partitioning` export.

use model::PartitionIndex;
use plugin::host::{InstanceSettings, ModuleError};
use plugin::partitioner::{Topic, check_partitions};
use plugin::{Batch, Partitioner, Trap};

use crate::bindings::exports::millstream::plugin::partitioning;
use crate::compiled_plugin::CompiledPlugin;
use crate::instance::{self, Instance, Purpose};

pub(crate) struct GuestPartitioner {
    instance: Instance<partitioning::Guest>,
}

impl GuestPartitioner {
    /// # Errors
    /// If the instance does not start.
    pub(crate) fn start(
        plugin: &CompiledPlugin,
        settings: InstanceSettings,
        indices: &partitioning::GuestIndices,
    ) -> Result<Self, ModuleError> {
        let indices = indices.clone();
        let instance = Instance::start(plugin, settings, move |store, instance| indices.load(store, instance))?;
        Ok(GuestPartitioner { instance })
    }
}

impl Partitioner for GuestPartitioner {
    fn partition(&mut self, topic: &Topic, rows: &Batch) -> Result<Vec<Option<PartitionIndex>>, Trap> {
        let purpose = Purpose {
            first_offset: rows.columns().base_offset,
            output: None,
        };
        let offline: Vec<u32> = topic
            .offline
            .iter()
            .map(|partition| partition.get().unsigned_abs())
            .collect();
        let (answer, _) = self.instance.call(purpose, |store, guest| {
            let topic = partitioning::Topic {
                name: topic.name.as_str(),
                partitions: topic.partitions,
                offline: &offline,
            };
            guest.call_partition(store, topic, instance::batch(rows))
        })?;
        Ok(check_partitions(&answer, topic, rows.len())?)
    }
}
