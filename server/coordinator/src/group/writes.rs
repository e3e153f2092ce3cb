//! Records that were handed to the shell and are not committed yet, and what is to happen when they are.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use model::Offset;
use protocol::Text;

use super::classic::group::ClassicGroup;
use super::classic::member::MemberId;
use super::classic::static_rejoin::StaticRejoin;
use super::records::GroupRecord;
use super::request::GroupResponse;
use crate::shard::{Effect, Token, WriteId};

/// What a commit brings about beside the replay of the records, or a failure takes back.
#[derive(Debug)]
pub(super) enum Then {
    Nothing,
    /// The group becomes visible; on failure it is gone.
    Create {
        group_id: Text,
    },
    /// The members get their assignments and the group is stable; on failure they are told and rejoin.
    Assign {
        group_id: Text,
        assignments: BTreeMap<MemberId, Bytes>,
    },
    /// The static member is told its new id; on failure it has its old one again.
    Rejoin(Box<StaticRejoin>),
    /// On failure the groups are back.
    Delete {
        groups: Vec<(Text, ClassicGroup)>,
    },
}

/// An answer that waits for a write.
pub(super) type Answer = (Token, GroupResponse);

#[derive(Debug)]
pub(super) struct Write {
    pub(super) id: WriteId,
    /// The offset behind the last record, once it is in the log.
    end: Option<Offset>,
    pub(super) records: Vec<GroupRecord>,
    pub(super) answer: Option<Answer>,
    pub(super) then: Then,
}

/// In the order of the log.
#[derive(Debug, Default)]
pub(super) struct Writes {
    issued: u64,
    in_flight: VecDeque<Write>,
    /// Writes that never left: each is undone before the turn ends.
    unencodable: Vec<WriteId>,
}

impl Writes {
    pub(super) fn len(&self) -> usize {
        self.in_flight.len()
    }

    /// Asks the shell to append `records`. Records that the format cannot hold are a failed write
    /// ([`Writes::take_unencodable`]).
    pub(super) fn append(
        &mut self,
        records: Vec<GroupRecord>,
        answer: Option<Answer>,
        then: Then,
        effects: &mut Vec<Effect<GroupResponse>>,
    ) -> WriteId {
        self.issued += 1;
        let id = WriteId(self.issued);
        let encoded: Result<Vec<_>, _> = records.iter().map(GroupRecord::encode).collect();
        match encoded {
            Ok(records) => effects.push(Effect::Append { write: id, records }),
            Err(_) => self.unencodable.push(id),
        }
        self.in_flight.push_back(Write {
            id,
            end: None,
            records,
            answer,
            then,
        });
        id
    }

    pub(super) fn take_unencodable(&mut self) -> Option<WriteId> {
        self.unencodable.pop()
    }

    pub(super) fn appended(&mut self, id: WriteId, end: Offset) {
        if let Some(write) = self.in_flight.iter_mut().rev().find(|write| write.id == id) {
            write.end = Some(end);
        }
    }

    pub(super) fn failed(&mut self, id: WriteId) -> Option<Write> {
        let at = self.in_flight.iter().rposition(|write| write.id == id)?;
        self.in_flight.remove(at)
    }

    /// The oldest write, if it lies wholly below the high watermark.
    pub(super) fn next_committed(&mut self, high_watermark: Offset) -> Option<Write> {
        let end = self.in_flight.front()?.end?;
        if end > high_watermark {
            return None;
        }
        self.in_flight.pop_front()
    }

    pub(super) fn take_all(&mut self) -> VecDeque<Write> {
        std::mem::take(&mut self.in_flight)
    }

    /// Whether a tombstone of the group is under way.
    pub(super) fn will_delete(&self, group_id: &str) -> bool {
        let tombstone = |record: &GroupRecord| matches!(record, GroupRecord::Group { group_id: of, value: None } if **of == *group_id);
        self.in_flight.iter().flat_map(|write| &write.records).any(tombstone)
    }

    /// Partitions whose offsets will be written by commits that are under way, by group. To delete one takes a tombstone
    /// behind that commit; to expire one would lose it.
    pub(super) fn pending_offsets(&self) -> BTreeMap<Text, BTreeSet<(Text, i32)>> {
        let mut pending: BTreeMap<Text, BTreeSet<(Text, i32)>> = BTreeMap::new();
        for record in self.in_flight.iter().flat_map(|write| &write.records) {
            if let GroupRecord::Offset {
                group_id,
                topic,
                partition,
                value: Some(_),
            } = record
            {
                pending
                    .entry(group_id.clone())
                    .or_default()
                    .insert((topic.clone(), *partition));
            }
        }
        pending
    }
}
