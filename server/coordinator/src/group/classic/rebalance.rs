//! How a rebalance begins, how long it waits, and how it ends.
//!
//! It ends when all members have joined and no member id is out, or when the longest rebalance timeout of the members is
//! over. The first rebalance of a group waits `group.initial.rebalance.delay.ms` for more members, and again so long each
//! time that one came, up to the rebalance timeout (KIP-134).

use std::collections::BTreeMap;
use std::time::Duration;

use model::ErrorCode;

use super::Classic;
use super::group::{GroupState, InitialDelay};
use super::join;
use super::member::MemberId;
use crate::group::config::REBALANCE_RETRY_WAIT_MIN;
use crate::group::records::GroupRecord;
use crate::group::shard::TimerKey;

impl Classic<'_> {
    /// Something has changed: begin a rebalance, or see whether the one that runs is complete. The record that comes back
    /// has to be appended: the group lost its last member.
    #[must_use]
    pub(super) fn rebalance_or_complete(&mut self) -> Option<GroupRecord> {
        match self.group.state() {
            GroupState::PreparingRebalance => self.complete_if_all_joined(),
            _ => self.prepare_rebalance(),
        }
    }

    /// Ends the rebalance if all have joined; the first one of a group ends by its timer alone.
    #[must_use]
    pub(super) fn complete_if_all_joined(&mut self) -> Option<GroupRecord> {
        let preparing = self.group.state() == GroupState::PreparingRebalance;
        let first = self.group.previous_state() == GroupState::Empty;
        if preparing && !first && self.group.all_have_joined() {
            return self.complete_join();
        }
        None
    }

    #[must_use]
    pub(super) fn prepare_rebalance(&mut self) -> Option<GroupRecord> {
        if self.group.state() == GroupState::CompletingRebalance {
            self.reset_assignments(ErrorCode::RebalanceInProgress);
        }
        self.group.pending_sync.clear();
        self.timers.cancel(&TimerKey::Sync(self.group_id.clone()));
        let first = self.group.state() == GroupState::Empty;
        self.group.transition(GroupState::PreparingRebalance, self.now.wall);
        if first {
            let wait = self.config.initial_rebalance_delay;
            let remaining = self.group.rebalance_timeout().saturating_sub(wait);
            self.wait_initially(InitialDelay { wait, remaining });
            return None;
        }
        self.group.initial_delay = None;
        if self.group.all_have_joined() {
            return self.complete_join();
        }
        self.set_timer(TimerKey::Join(self.group_id.clone()), self.group.rebalance_timeout());
        None
    }

    fn wait_initially(&mut self, delay: InitialDelay) {
        self.group.initial_delay = Some(delay);
        self.group.new_member_added = false;
        self.set_timer(TimerKey::Join(self.group_id.clone()), delay.wait);
    }

    /// The time to join is up.
    #[must_use]
    pub(in crate::group) fn join_time_is_up(&mut self) -> Option<GroupRecord> {
        if self.group.state() != GroupState::PreparingRebalance {
            return None;
        }
        if let Some(delay) = self.group.initial_delay
            && self.group.new_member_added
            && delay.remaining > Duration::ZERO
        {
            self.wait_initially(InitialDelay {
                wait: self.config.initial_rebalance_delay.min(delay.remaining),
                remaining: delay.remaining.saturating_sub(delay.wait),
            });
            return None;
        }
        self.complete_join()
    }

    /// Ends the time to join: who has not come is out (static members excepted: they are waited for by their session),
    /// the next generation begins, and all who wait are told.
    #[must_use]
    pub(super) fn complete_join(&mut self) -> Option<GroupRecord> {
        self.timers.cancel(&TimerKey::Join(self.group_id.clone()));
        let missing = self
            .group
            .members
            .iter()
            .filter(|(_, member)| member.awaiting_join.is_none() && member.group_instance_id.is_none());
        let missing: Vec<MemberId> = missing.map(|(id, _)| id.clone()).collect();
        for id in missing {
            self.remove_member(&id, ErrorCode::UnknownMemberId);
        }
        if !self.group.elect_joined_leader() && !self.group.members.is_empty() {
            // Only static members are left and none has come: sessions will remove those that never do.
            let wait = self.group.rebalance_timeout().max(REBALANCE_RETRY_WAIT_MIN);
            self.set_timer(TimerKey::Join(self.group_id.clone()), wait);
            return None;
        }
        self.group.initial_delay = None;
        self.group.next_generation(self.now.wall);
        if self.group.members.is_empty() {
            return Some(self.group.record(self.group_id, &BTreeMap::new()));
        }
        self.tell_joined();
        None
    }

    /// Answers all joins. Each member now has its session to heartbeat in, and all together the rebalance timeout to ask
    /// for their assignments.
    fn tell_joined(&mut self) {
        let ids: Vec<MemberId> = self.group.members.keys().cloned().collect();
        for id in ids {
            let Some(member) = self.group.members.get_mut(&id) else {
                continue;
            };
            member.is_new = false;
            let waiting = member.awaiting_join.take();
            self.group.pending_sync.insert(id.clone());
            if let Some(waiting) = waiting {
                let response = join::joined(self.group, &id, waiting.version);
                self.respond(waiting.token, response);
            }
            self.renew_session(&id);
        }
        self.set_timer(TimerKey::Sync(self.group_id.clone()), self.group.rebalance_timeout());
    }

    /// The time to sync is up: members that have not asked for their assignments are out.
    #[must_use]
    pub(in crate::group) fn sync_time_is_up(&mut self) -> Option<GroupRecord> {
        let synced = self.group.pending_sync.is_empty();
        let rebalanced = matches!(self.group.state(), GroupState::CompletingRebalance | GroupState::Stable);
        if synced || !rebalanced {
            return None;
        }
        for id in std::mem::take(&mut self.group.pending_sync) {
            self.remove_member(&id, ErrorCode::UnknownMemberId);
        }
        self.prepare_rebalance()
    }
}
