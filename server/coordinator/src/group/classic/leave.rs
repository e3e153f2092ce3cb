//! LeaveGroup, versions 0–5: members go, by themselves or removed by an operator.
//!
//! Up to version 2 one member leaves, and its error is the answer's; from 3 on many can, each with an error of its own. A
//! static member is removed by its instance id with an empty member id.

use model::ErrorCode;
use protocol::messages::leave_group_request::{LeaveGroupRequest, MemberIdentity};
use protocol::messages::leave_group_response::{LeaveGroupResponse, MemberResponse};

use super::Classic;
use super::group::GroupState;
use super::member::MemberId;
use crate::group::writes::Then;
use crate::shard::Token;

/// From here on the request has a list of members.
const BATCH_VERSION: i16 = 3;

/// The members that are to leave, whatever the version.
pub(in crate::group) fn leaving(request: &LeaveGroupRequest, version: i16) -> Vec<MemberIdentity> {
    match version {
        ..BATCH_VERSION => vec![MemberIdentity {
            member_id: request.member_id.clone(),
            ..MemberIdentity::default()
        }],
        _ => request.members.clone(),
    }
}

/// The answer with one error a member.
pub(in crate::group) fn response(errors: Vec<(MemberIdentity, ErrorCode)>, version: i16) -> LeaveGroupResponse {
    let error = match (version, errors.first()) {
        (..BATCH_VERSION, Some((_, error))) => *error,
        _ => ErrorCode::None,
    };
    let members = errors.into_iter().map(|(member, error)| MemberResponse {
        member_id: member.member_id,
        group_instance_id: member.group_instance_id,
        error_code: error.code(),
        ..MemberResponse::default()
    });
    LeaveGroupResponse {
        error_code: error.code(),
        members: match version {
            ..BATCH_VERSION => Vec::new(),
            _ => members.collect(),
        },
        ..LeaveGroupResponse::default()
    }
}

impl Classic<'_> {
    /// If the last member goes, the answer waits until that is stored.
    pub(in crate::group) fn leave(&mut self, request: &LeaveGroupRequest, version: i16, token: Token) {
        let mut errors = Vec::new();
        for member in leaving(request, version) {
            let error = self.leave_one(&member).err().unwrap_or(ErrorCode::None);
            errors.push((member, error));
        }
        let somebody_left = errors.iter().any(|(_, error)| *error == ErrorCode::None);
        let record = match self.group.state() {
            GroupState::Stable | GroupState::CompletingRebalance if somebody_left => self.prepare_rebalance(),
            GroupState::PreparingRebalance if somebody_left => self.complete_if_all_joined(),
            _ => None,
        };
        let response = response(errors, version);
        match record {
            Some(record) => {
                self.append(record, Some((token, response.into())), Then::Nothing);
            }
            None => self.respond(token, response),
        }
    }

    fn leave_one(&mut self, member: &MemberIdentity) -> Result<(), ErrorCode> {
        let instance_id = member.group_instance_id.as_ref();
        let member_id = match member.member_id.is_empty() {
            true => {
                let current = instance_id.and_then(|instance_id| self.group.static_members.get(instance_id));
                current.cloned().ok_or(ErrorCode::UnknownMemberId)?
            }
            false => {
                let pending = MemberId::from(member.member_id.clone());
                match self.group.pending_members.contains(&pending) {
                    true => pending,
                    false => self.group.check_member(&member.member_id, instance_id)?,
                }
            }
        };
        self.remove_member(&member_id, ErrorCode::UnknownMemberId);
        Ok(())
    }
}
