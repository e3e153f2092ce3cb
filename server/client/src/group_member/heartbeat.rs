//! The sign of life of a member, sent beside its reading: it ends when the group moves on, and when nobody has asked for
//! records in too long a time.

use std::time::Duration;

use model::ErrorCode;
use protocol::messages::heartbeat_request::HeartbeatRequest;
use protocol::{ApiKey, Response, Text};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::GroupMemberOptions;
use super::membership::Membership;
use crate::routing::unexpected;
use crate::{CallContext, Client, Error, Target};

/// Why a generation is over for its member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pulse {
    /// The group shares its partitions out anew; what was read can still be committed.
    Rebalance,
    /// The group has gone on without the member.
    Expelled(ErrorCode),
}

/// The beating of one generation. Dropping it ends it.
pub(super) struct Heartbeat {
    over: mpsc::Receiver<Result<Pulse, Error>>,
    asked: watch::Sender<Instant>,
    task: JoinHandle<()>,
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Heartbeat {
    pub(super) fn start(
        client: &Client,
        context: &CallContext,
        options: &GroupMemberOptions,
        membership: &Membership,
    ) -> Self {
        let (asked, last_asked) = watch::channel(Instant::now());
        let (sender, over) = mpsc::channel(1);
        let beat = Beat {
            client: client.clone(),
            context: context.clone(),
            options: options.clone(),
            membership: membership.clone(),
            last_asked,
        };
        let task = tokio::spawn(async move {
            let ended = beat.run().await;
            // Nobody waits any more for a generation that was dropped.
            let _ = sender.send(ended).await;
        });
        Heartbeat { over, asked, task }
    }

    /// Somebody has asked for records.
    pub(super) fn asked(&self) {
        self.asked.send_replace(Instant::now());
    }

    /// Waits for the end of the generation.
    pub(super) async fn next(&mut self) -> Result<Pulse, Error> {
        match self.over.recv().await {
            Some(ended) => ended,
            // It has been told before: join again.
            None => Ok(Pulse::Expelled(ErrorCode::IllegalGeneration)),
        }
    }
}

struct Beat {
    client: Client,
    context: CallContext,
    options: GroupMemberOptions,
    membership: Membership,
    last_asked: watch::Receiver<Instant>,
}

impl Beat {
    async fn run(self) -> Result<Pulse, Error> {
        let mut ticks = interval(self.options.heartbeat_interval.max(Duration::from_millis(1)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.tick().await;
        loop {
            ticks.tick().await;
            if self.last_asked.borrow().elapsed() > self.options.rebalance_timeout {
                return self.leave().await;
            }
            match self.beat().await {
                Ok(()) => {}
                Err(error) => match error.code() {
                    ErrorCode::RebalanceInProgress => return Ok(Pulse::Rebalance),
                    code @ (ErrorCode::UnknownMemberId | ErrorCode::IllegalGeneration) => {
                        return Ok(Pulse::Expelled(code));
                    }
                    // The session lasts for several beats, so one may fail.
                    _ if error.is_retriable() => {}
                    _ => return Err(error),
                },
            }
        }
    }

    async fn beat(&self) -> Result<(), Error> {
        let group = &self.options.group;
        let target = Target::CoordinatorOf(group.clone());
        let request = HeartbeatRequest {
            group_id: Text::from(group.as_str()),
            generation_id: self.membership.generation,
            member_id: Text::from(&self.membership.member_id),
            group_instance_id: self.options.instance_id.as_ref().map(Text::from),
            ..Default::default()
        };
        let wait = self.options.session_timeout;
        let response = self
            .client
            .call_within(&self.context, target.clone(), request.into(), wait)
            .await?;
        let Response::Heartbeat(response) = response else {
            return Err(unexpected(ApiKey::Heartbeat));
        };
        Error::check(response.error_code, None, || {
            format!("keeping a place in group {group}")
        })
        .inspect_err(|error| self.client.doubt(&target, error))
    }

    async fn leave(&self) -> Result<Pulse, Error> {
        let group = &self.options.group;
        let member_id = &self.membership.member_id;
        tracing::warn!(group_id = %group, %member_id, "nobody has asked for records in too long a time: leaving");
        let left = self.client.remove_group_member(&self.context, group, member_id).await;
        match left {
            Err(error) if error.code() != ErrorCode::UnknownMemberId => Err(error),
            _ => Ok(Pulse::Expelled(ErrorCode::UnknownMemberId)),
        }
    }
}
