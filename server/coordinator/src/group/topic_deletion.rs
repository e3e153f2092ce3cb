//! A topic is deleted: what groups have committed to it is deleted too, so that a later topic of the same name does not
//! begin at a stranger's offset.

use std::collections::BTreeSet;

use protocol::Text;

use super::records::GroupRecord;
use super::shard::{Effects, GroupShard};

impl GroupShard {
    /// Called by the shell when the cluster's metadata says that topics are gone.
    pub fn topics_deleted<'a>(&mut self, topics: impl IntoIterator<Item = &'a str>, effects: &mut Effects) {
        let pending = self.writes.pending_offsets();
        let mut records = Vec::new();
        for topic in topics {
            let under_way = pending.iter().flat_map(|(group_id, offsets)| {
                let of_topic = offsets.iter().filter(|(of, _)| **of == *topic);
                of_topic.map(move |(_, partition)| (group_id.clone(), *partition))
            });
            let mut offsets: BTreeSet<(Text, i32)> = under_way.collect();
            let committed = self.offsets.of_topic(topic);
            offsets.extend(committed.map(|(group_id, partition)| (group_id.clone(), partition)));
            records.extend(offsets.into_iter().map(|(group_id, partition)| GroupRecord::Offset {
                group_id,
                topic: Text::from(topic),
                partition,
                value: None,
            }));
        }
        self.append_tombstones(records, effects);
    }
}
