//! Chooses partitions for rows that are about to be produced.

use crate::bindings::exports::millstream::plugin::partitioning;
use crate::bindings::millstream::plugin::types::Batch;
use crate::plugin::{Adapter, Plugin, with};
use crate::rows::{Row, Rows};

/// The topic that rows are for.
pub struct Topic {
    pub name: String,
    pub partitions: u32,
    /// Partitions that have no leader at the moment.
    pub offline: Vec<u32>,
}

pub trait Partitioner: Plugin {
    /// `None` leaves the choice to the producer.
    fn partition(&mut self, topic: &Topic, row: &Row<'_>) -> Option<u32>;
}

impl<P: Partitioner> partitioning::Guest for Adapter<P> {
    fn partition(topic: partitioning::Topic, rows: Batch) -> Vec<i32> {
        let topic = Topic {
            name: topic.name,
            partitions: topic.partitions,
            offline: topic.offline,
        };
        let number = |partition: u32| i32::try_from(partition).expect("a partition's number has 31 bits");
        with(|plugin: &mut P| {
            let rows = Rows::new(rows);
            rows.iter()
                .map(|row| plugin.partition(&topic, &row).map_or(-1, number))
                .collect()
        })
    }
}

/// Makes the library a component of the world `partitioner`.
#[macro_export]
macro_rules! partitioner {
    ($plugin:ty) => {
        type MillstreamPlugin = $crate::glue::Adapter<$plugin>;
        $crate::__world!(MillstreamPlugin, PARTITIONER,
            lifecycle __export_millstream_plugin_lifecycle_0_1_0_cabi
            partitioning __export_millstream_plugin_partitioning_0_1_0_cabi
        );
    };
}
