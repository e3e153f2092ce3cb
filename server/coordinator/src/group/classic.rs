//! The classic group protocol (KIP-62, KIP-345, KIP-394): members join, the coordinator chooses a protocol and a leader,
//! the leader assigns, all sync.
//!
//! ```text
//!            join               all joined or time up          assignment committed
//!   Empty ─────────▶ Preparing ───────────────────▶ Completing ─────────────────────▶ Stable
//!     ▲                │  ▲ ▲                           │                              │
//!     └────────────────┘  │ └─── join, leave, expiry ───┘                              │
//!      nobody is left     └────────── join with changes, leave, expiry ────────────────┘
//! ```
//!
//! [`Classic`] is one group together with what a request or timer may touch while it is decided on; each request and
//! decision is a file that adds to it.

pub(super) mod group;
mod heartbeat;
mod join;
mod leave;
pub(super) mod member;
mod member_expiry;
mod rebalance;
pub(super) mod static_rejoin;
mod sync;

use std::time::Duration;

use model::ErrorCode;
use protocol::Text;
use protocol::messages::join_group_response::JoinGroupResponse;
use protocol::messages::leave_group_request::LeaveGroupRequest;
use protocol::messages::leave_group_response::LeaveGroupResponse;

use self::group::ClassicGroup;
use self::member::MemberId;
use super::config::GroupConfig;
use super::records::GroupRecord;
use super::request::GroupResponse;
use super::shard::TimerKey;
use super::writes::{Answer, Then, Writes};
use crate::shard::{Effect, Now, Token, WriteId};
use crate::timers::Timers;

pub(super) use self::join::Join;
pub(super) use self::sync::{check as sync_check, refusal as sync_refusal};

/// One group, and what a turn on it may touch.
pub(super) struct Classic<'a> {
    pub(super) group_id: &'a Text,
    pub(super) group: &'a mut ClassicGroup,
    pub(super) config: &'a GroupConfig,
    pub(super) timers: &'a mut Timers<TimerKey>,
    pub(super) writes: &'a mut Writes,
    pub(super) now: Now,
    pub(super) effects: &'a mut Vec<Effect<GroupResponse>>,
}

/// The answer to a join that waited when the partition went to another broker.
pub(super) fn join_refusal(error: ErrorCode, version: i16) -> JoinGroupResponse {
    join::refusal(Text::new(), error, version)
}

/// The answer to members who leave a group that is not there.
pub(super) fn leave_refusal(request: &LeaveGroupRequest, version: i16) -> LeaveGroupResponse {
    let unknown = leave::leaving(request, version)
        .into_iter()
        .map(|member| (member, ErrorCode::UnknownMemberId));
    leave::response(unknown.collect(), version)
}

impl Classic<'_> {
    /// A loaded group is greater than it may be now: all have to join again, and some will not be let in.
    #[must_use]
    pub(super) fn begin_rebalance(&mut self) -> Option<GroupRecord> {
        self.prepare_rebalance()
    }

    fn respond(&mut self, token: Token, response: impl Into<GroupResponse>) {
        let response = response.into();
        self.effects.push(Effect::Respond { token, response });
    }

    fn append(&mut self, record: GroupRecord, answer: Option<Answer>, then: Then) -> WriteId {
        self.writes.append(vec![record], answer, then, self.effects)
    }

    fn set_timer(&mut self, key: TimerKey, wait: Duration) {
        self.timers.set(key, self.now.monotonic.plus(wait));
    }

    fn session_key(&self, member_id: &MemberId) -> TimerKey {
        TimerKey::Session(self.group_id.clone(), member_id.clone())
    }

    /// The member was heard of: its session starts anew.
    pub(super) fn renew_session(&mut self, member_id: &MemberId) {
        if let Some(member) = self.group.members.get(member_id) {
            let wait = member.session_timeout();
            self.set_timer(self.session_key(member_id), wait);
        }
    }

    /// Takes a member out of the group, or gives up its pending id. What it waits for is answered with `error`.
    fn remove_member(&mut self, member_id: &MemberId, error: ErrorCode) {
        self.timers.cancel(&self.session_key(member_id));
        if let Some(mut member) = self.group.remove(member_id) {
            if let Some(waiting) = member.awaiting_join.take() {
                self.respond(waiting.token, join::refusal(Text::new(), error, waiting.version));
            }
            if let Some(token) = member.awaiting_sync.take() {
                self.respond(token, sync::refusal(error));
            }
        }
    }
}
