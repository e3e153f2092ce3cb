//! Offsets that nobody has needed for `offsets.retention.minutes` are deleted, and groups that have none left (KIP-211).
//!
//! When the time begins depends on the group: without members, when the last one left; with consumers, which must not
//! read the topic any more, at the commit; without ever having had members, at the commit. Other groups with members
//! keep all offsets.

use std::collections::BTreeSet;

use model::Timestamp;
use protocol::Text;

use super::classic::group::{ClassicGroup, GroupState};
use super::config::TOMBSTONES_PER_WRITE_MAX;
use super::offset_commit::plus;
use super::records::{CommittedOffset, GroupRecord};
use super::shard::{Effects, GroupShard, TimerKey};
use super::writes::Then;
use crate::shard::Now;

/// From when on the retention of a group's offsets counts.
#[derive(Clone, Copy)]
enum Expiry {
    Never,
    FromCommit,
    FromStateChange(Timestamp),
}

impl Expiry {
    fn of(group: &ClassicGroup) -> Self {
        match (group.state(), group.state_since()) {
            _ if group.protocol_type.is_none() => Expiry::FromCommit,
            (GroupState::Empty, Some(since)) => Expiry::FromStateChange(since),
            (GroupState::Empty, None) => Expiry::FromCommit,
            (GroupState::Stable, _) if group.is_consumer_group() && group.knows_subscriptions() => Expiry::FromCommit,
            _ => Expiry::Never,
        }
    }
}

impl GroupShard {
    pub(super) fn schedule_offset_expiry(&mut self, now: Now) {
        let at = now.monotonic.plus(self.config.offsets_retention_check_interval);
        self.timers.set(TimerKey::OffsetExpiry, at);
    }

    pub(super) fn expire_offsets(&mut self, now: Now, effects: &mut Effects) {
        let pending = self.writes.pending_offsets();
        let none = BTreeSet::new();
        let mut expired = Vec::new();
        let mut deserted = Vec::new();
        for (group_id, group) in &self.groups {
            let (offsets, all) =
                self.expired_offsets(group_id, group, pending.get(group_id).unwrap_or(&none), now.wall);
            expired.extend(offsets);
            if all && group.is_deserted() && group.is_stored() {
                deserted.push(group_id.clone());
            }
        }
        // Groups whose last offset expires follow their offsets in the log.
        self.append_tombstones(expired, effects);
        self.delete_deserted(&deserted, effects);
        self.schedule_offset_expiry(now);
    }

    /// The tombstones of a group's expired offsets, and whether they are all that it has.
    fn expired_offsets(
        &self,
        group_id: &Text,
        group: &ClassicGroup,
        pending: &BTreeSet<(Text, i32)>,
        now: Timestamp,
    ) -> (Vec<GroupRecord>, bool) {
        if !self.offsets.has_group(group_id) {
            return (Vec::new(), pending.is_empty());
        }
        let expiry = Expiry::of(group);
        let mut all = pending.is_empty();
        let mut tombstones = Vec::new();
        for (topic, partitions) in self.offsets.topics(group_id) {
            let in_use = group.is_subscribed_to(topic);
            for (partition, offset) in partitions {
                let busy = in_use || pending.contains(&(topic.clone(), *partition));
                if busy || !self.is_expired(offset, expiry, now) {
                    all = false;
                    continue;
                }
                tombstones.push(GroupRecord::Offset {
                    group_id: group_id.clone(),
                    topic: topic.clone(),
                    partition: *partition,
                    value: None,
                });
            }
        }
        (tombstones, all)
    }

    fn is_expired(&self, offset: &CommittedOffset, expiry: Expiry, now: Timestamp) -> bool {
        let since = match expiry {
            Expiry::Never => return false,
            _ if offset.expire_timestamp.is_some() => return offset.expire_timestamp <= Some(now),
            Expiry::FromCommit => offset.commit_timestamp,
            Expiry::FromStateChange(since) => since,
        };
        plus(since, self.config.offsets_retention) <= now
    }

    /// Writes of the coordinator's own accord, none of them too great for a batch.
    pub(super) fn append_tombstones(&mut self, mut records: Vec<GroupRecord>, effects: &mut Effects) {
        while !records.is_empty() {
            let rest = records.split_off(records.len().min(TOMBSTONES_PER_WRITE_MAX));
            self.append(records, None, Then::Nothing, effects);
            records = rest;
        }
    }

    fn delete_deserted(&mut self, group_ids: &[Text], effects: &mut Effects) {
        for chunk in group_ids.chunks(TOMBSTONES_PER_WRITE_MAX) {
            let records = chunk.iter().map(|group_id| GroupRecord::Group {
                group_id: group_id.clone(),
                value: None,
            });
            let records = records.collect();
            let groups = chunk.iter().filter_map(|group_id| self.take_group(group_id)).collect();
            self.append(records, None, Then::Delete { groups }, effects);
        }
    }
}
