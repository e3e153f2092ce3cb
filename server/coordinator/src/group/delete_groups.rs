//! DeleteGroups, versions 0–3: groups without members go, with all their offsets.

use std::collections::BTreeSet;

use model::ErrorCode;
use protocol::Text;
use protocol::messages::delete_groups_request::DeleteGroupsRequest;
use protocol::messages::delete_groups_response::{DeletableGroupResult, DeleteGroupsResponse};

use super::classic::group::{ClassicGroup, GroupState};
use super::records::GroupRecord;
use super::shard::{Effects, GroupShard, TimerKey};
use super::writes::Then;
use crate::shard::Token;

impl GroupShard {
    pub(super) fn delete_groups(&mut self, request: &DeleteGroupsRequest, token: Token, effects: &mut Effects) {
        let mut records = Vec::new();
        let mut groups = Vec::new();
        let mut response = DeleteGroupsResponse::default();
        let names: BTreeSet<&Text> = request.groups_names.iter().collect();
        for group_id in names {
            let error = self.check_delete(group_id).err().unwrap_or(ErrorCode::None);
            if error == ErrorCode::None {
                records.extend(self.group_tombstones(group_id));
                groups.extend(self.take_group(group_id));
            }
            response.results.push(DeletableGroupResult {
                group_id: group_id.clone(),
                error_code: error.code(),
                ..DeletableGroupResult::default()
            });
        }
        self.answer_when_committed(token, response.into(), records, Then::Delete { groups }, effects);
    }

    fn check_delete(&self, group_id: &str) -> Result<(), ErrorCode> {
        let group = self.groups.get(group_id).filter(|group| group.is_stored());
        let group = group.ok_or(ErrorCode::GroupIdNotFound)?;
        match group.state() {
            GroupState::Empty => Ok(()),
            _ => Err(ErrorCode::NonEmptyGroup),
        }
    }

    /// The offsets' tombstones come first, so that every prefix of the write leaves a group with its other offsets.
    fn group_tombstones(&self, group_id: &Text) -> Vec<GroupRecord> {
        let committed = self
            .offsets
            .topics(group_id)
            .flat_map(|(topic, partitions)| partitions.keys().map(move |partition| (topic.clone(), *partition)));
        let mut offsets = self.writes.pending_offsets().remove(group_id).unwrap_or_default();
        offsets.extend(committed);
        let offsets = offsets.into_iter().map(|(topic, partition)| GroupRecord::Offset {
            group_id: group_id.clone(),
            topic,
            partition,
            value: None,
        });
        let group = GroupRecord::Group {
            group_id: group_id.clone(),
            value: None,
        };
        offsets.chain([group]).collect()
    }

    /// The group is gone from now on, so that a member that joins before the tombstone is committed founds a new one.
    pub(super) fn take_group(&mut self, group_id: &Text) -> Option<(Text, ClassicGroup)> {
        let mut group = self.groups.remove(group_id)?;
        for member_id in std::mem::take(&mut group.pending_members) {
            self.timers.cancel(&TimerKey::Session(group_id.clone(), member_id));
        }
        Some((group_id.clone(), group))
    }
}
