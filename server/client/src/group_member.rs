//! A consumer in a group, by the classic protocol: it joins, reads what it is assigned, commits, and makes room when the
//! group rebalances.
//!
//! ```text
//!   join ──► sync ──► assigned: tail from the committed offsets ──► records ──► commit
//!    ▲                    │ heartbeat says: rebalance                            │
//!    └──── commit ◄───────┴──────────────────────────────────────────────────────┘
//! ```
//! Delivery is at least once: what was handed out and not committed comes again, to this member or to another.

pub mod assignor;
mod heartbeat;
mod membership;
#[cfg(test)]
mod tests;
mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::record_batch::Record;
use model::{ErrorCode, GroupId, Offset, TopicName, TopicPartition};
use protocol::Response;
use tokio::time::Instant;

use crate::fetcher::{OutOfRange, Start, Tail, TailOptions};
use crate::retry::retrying;
use crate::{CallContext, Chunk, Client, Error, Target};
use assignor::Assignor;
use heartbeat::{Heartbeat, Pulse};
use membership::Membership;

pub(crate) use wire::assigned_partitions;

/// How many times a member joins again before it gives up on a group that never comes to rest.
const JOINS_MAX: u32 = 100;

/// Where to begin in a partition that the group has no offset for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Reset {
    Earliest,
    #[default]
    Latest,
}

/// How a member takes part.
#[derive(Clone, Debug)]
pub struct GroupMemberOptions {
    pub group: GroupId,
    pub topics: BTreeSet<TopicName>,
    /// `group.instance.id`: a static member keeps its partitions over a restart.
    pub instance_id: Option<String>,
    /// How long the group waits for a sign of life.
    pub session_timeout: Duration,
    pub heartbeat_interval: Duration,
    /// How long the others wait for a member that has to join again, and how long this one may go without asking for
    /// records before it leaves (`max.poll.interval.ms`).
    pub rebalance_timeout: Duration,
    /// In the order of preference.
    pub assignors: Vec<Assignor>,
    pub reset: Reset,
    /// Commit what was handed out this often, and when partitions are given back; `None`: only by
    /// [`GroupMember::commit`].
    pub auto_commit: Option<Duration>,
    pub tail: TailOptions,
}

impl GroupMemberOptions {
    #[must_use]
    pub fn new(group: GroupId, topics: BTreeSet<TopicName>) -> Self {
        GroupMemberOptions {
            group,
            topics,
            instance_id: None,
            session_timeout: Duration::from_secs(45),
            heartbeat_interval: Duration::from_secs(3),
            rebalance_timeout: Duration::from_secs(300),
            assignors: vec![Assignor::Range, Assignor::RoundRobin],
            reset: Reset::default(),
            auto_commit: Some(Duration::from_secs(5)),
            tail: TailOptions::default(),
        }
    }
}

/// What a member is told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GroupEvent {
    /// Reading these from now on, and no others.
    Assigned(BTreeSet<TopicPartition>),
    /// Records of one partition, in their order. Without records: its end was reached.
    Records {
        partition: TopicPartition,
        records: Vec<Record>,
        /// Where the partition is read on.
        next: Offset,
        /// The end of what can be read.
        end: Offset,
    },
}

/// A member of a consumer group. Dropping it without [`GroupMember::leave`] leaves its partitions unread until the
/// session times out.
pub struct GroupMember {
    client: Client,
    context: CallContext,
    options: GroupMemberOptions,
    member_id: String,
    joined: Option<Joined>,
    /// The next offset of each partition that records were handed out from.
    positions: BTreeMap<TopicPartition, Offset>,
    committed: BTreeMap<TopicPartition, Offset>,
    commit_at: Instant,
}

/// One generation, for as long as it lasts.
struct Joined {
    membership: Membership,
    heartbeat: Heartbeat,
    tail: Option<Tail>,
}

impl GroupMember {
    /// A member that joins when it is first asked for records.
    #[must_use]
    pub fn new(client: Client, context: CallContext, options: GroupMemberOptions) -> Self {
        GroupMember {
            client,
            context,
            options,
            member_id: String::new(),
            joined: None,
            positions: BTreeMap::new(),
            committed: BTreeMap::new(),
            commit_at: Instant::now(),
        }
    }

    /// The id that the coordinator knows this member by; empty before the first join.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.member_id
    }

    /// Waits for what comes next. Records that were handed out before count as dealt with: they may be committed.
    ///
    /// Cancel safe: when the future is dropped before it is ready, nothing is lost.
    ///
    /// # Errors
    /// What the coordinator or a leader refuses for good, as a lack of rights or an unknown topic; and those of
    /// [`Client::call`].
    pub async fn next(&mut self) -> Result<GroupEvent, Error> {
        loop {
            let Some(joined) = &mut self.joined else {
                let assigned = self.join().await?;
                return Ok(GroupEvent::Assigned(assigned));
            };
            joined.heartbeat.asked();
            let commit_at = self.options.auto_commit.map(|_| self.commit_at);
            let chunk = tokio::select! {
                biased;
                pulse = joined.heartbeat.next() => {
                    self.end_generation(pulse?).await;
                    continue;
                }
                () = sleep_until(commit_at) => {
                    self.commit_when_due().await?;
                    continue;
                }
                chunk = next_chunk(&mut joined.tail) => chunk?,
            };
            if !chunk.records.is_empty() {
                self.positions.insert(chunk.partition.clone(), chunk.next);
            }
            let Chunk {
                partition,
                records,
                next,
                end,
            } = chunk;
            return Ok(GroupEvent::Records {
                partition,
                records,
                next,
                end,
            });
        }
    }

    /// Commits the positions after all records that were handed out.
    ///
    /// # Errors
    /// REBALANCE_IN_PROGRESS, ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID if the partitions may have gone to another member:
    /// they come again; and those of [`Client::call`].
    pub async fn commit(&mut self) -> Result<(), Error> {
        let moved: BTreeMap<_, _> = self
            .positions
            .iter()
            .filter(|(partition, offset)| self.committed.get(*partition) != Some(*offset))
            .map(|(partition, offset)| (partition.clone(), *offset))
            .collect();
        let Some(joined) = &self.joined else { return Ok(()) };
        if moved.is_empty() {
            return Ok(());
        }
        let attempt = || self.commit_once(&joined.membership, &moved);
        retrying(self.client.options().call_wait_max, attempt).await?;
        self.committed.extend(moved);
        Ok(())
    }

    /// Takes back what was handed out from `partition` at `offset` and above: it will not be committed, and comes again
    /// in a later generation.
    pub fn take_back(&mut self, partition: &TopicPartition, offset: Offset) {
        if let Some(position) = self.positions.get_mut(partition) {
            *position = (*position).min(offset);
        }
    }

    /// Commits, if that is done by itself, and leaves the group, which then shares the partitions out anew.
    ///
    /// # Errors
    /// As [`GroupMember::commit`].
    pub async fn leave(mut self) -> Result<(), Error> {
        if self.options.auto_commit.is_some() {
            self.commit().await?;
        }
        let Some(joined) = self.joined.take() else {
            return Ok(());
        };
        drop(joined.heartbeat);
        if self.options.instance_id.is_some() {
            // A static member comes back under its instance id; its partitions wait for it.
            return Ok(());
        }
        self.client
            .remove_group_member(&self.context, &self.options.group, &self.member_id)
            .await
    }

    /// Joins, resolves where to read, and begins to.
    async fn join(&mut self) -> Result<BTreeSet<TopicPartition>, Error> {
        let mut attempts = 0;
        let membership = loop {
            attempts += 1;
            match membership::join(&self.client, &self.context, &self.options, &mut self.member_id).await {
                Ok(membership) => break membership,
                Err(error) if attempts < JOINS_MAX && is_about_generation(&error) => {
                    self.forget_member_if_unknown(error.code());
                }
                Err(error) => return Err(error),
            }
        };
        let heartbeat = Heartbeat::start(&self.client, &self.context, &self.options, &membership);
        let assigned = membership.assigned.clone();
        let starts = self.starts(&assigned).await?;
        self.positions.clear();
        self.committed.clear();
        let tail = if starts.is_empty() {
            None
        } else {
            let options = TailOptions {
                out_of_range: match self.options.reset {
                    Reset::Earliest => OutOfRange::ToEarliest,
                    Reset::Latest => OutOfRange::ToLatest,
                },
                ..self.options.tail.clone()
            };
            Some(self.client.tail(&self.context, starts, options).await?)
        };
        self.joined = Some(Joined {
            membership,
            heartbeat,
            tail,
        });
        self.schedule_commit();
        Ok(assigned)
    }

    async fn starts(&self, assigned: &BTreeSet<TopicPartition>) -> Result<Vec<(TopicPartition, Start)>, Error> {
        if assigned.is_empty() {
            return Ok(Vec::new());
        }
        let committed = self
            .client
            .group_offsets(&self.context, &self.options.group, Some(assigned), true)
            .await?;
        let reset = match self.options.reset {
            Reset::Earliest => Start::Earliest,
            Reset::Latest => Start::Latest,
        };
        let start = |partition: &TopicPartition| committed.get(partition).map_or(reset, |at| Start::Offset(at.offset));
        Ok(assigned
            .iter()
            .map(|partition| (partition.clone(), start(partition)))
            .collect())
    }

    /// Gives the partitions back; the next call joins again.
    async fn end_generation(&mut self, pulse: Pulse) {
        if self.options.auto_commit.is_some()
            && pulse == Pulse::Rebalance
            && let Err(error) = self.commit().await
        {
            // Who takes over reads again what could not be committed.
            tracing::warn!(group_id = %self.options.group, member_id = %self.member_id, %error, "not committed");
        }
        if let Pulse::Expelled(code) = pulse {
            self.forget_member_if_unknown(code);
        }
        self.joined = None;
    }

    fn forget_member_if_unknown(&mut self, code: ErrorCode) {
        if code == ErrorCode::UnknownMemberId {
            self.member_id.clear();
        }
    }

    async fn commit_when_due(&mut self) -> Result<(), Error> {
        self.schedule_commit();
        match self.commit().await {
            // The heartbeat will say so, too, and then the member joins again.
            Err(error) if is_about_generation(&error) => Ok(()),
            done => done,
        }
    }

    fn schedule_commit(&mut self) {
        if let Some(interval) = self.options.auto_commit {
            self.commit_at = Instant::now() + interval;
        }
    }

    async fn commit_once(
        &self,
        membership: &Membership,
        offsets: &BTreeMap<TopicPartition, Offset>,
    ) -> Result<(), Error> {
        let target = Target::CoordinatorOf(self.options.group.clone());
        let request = membership.commit_request(&self.options, offsets);
        let response = self.client.call(&self.context, target.clone(), request.into()).await?;
        let Response::OffsetCommit(response) = response else {
            return Err(crate::routing::unexpected(protocol::ApiKey::OffsetCommit));
        };
        for row in response.topics.iter().flat_map(|topic| &topic.partitions) {
            Error::check(row.error_code, None, || {
                format!("committing offsets of group {}", self.options.group)
            })
            .inspect_err(|error| self.client.doubt(&target, error))?;
        }
        Ok(())
    }
}

/// Whether the group has moved on without this member, who can only join again.
fn is_about_generation(error: &Error) -> bool {
    matches!(
        error.code(),
        ErrorCode::RebalanceInProgress | ErrorCode::IllegalGeneration | ErrorCode::UnknownMemberId
    )
}

async fn sleep_until(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

/// A member without partitions waits for the next generation.
async fn next_chunk(tail: &mut Option<Tail>) -> Result<Chunk, Error> {
    match tail {
        Some(tail) => tail
            .next()
            .await
            .unwrap_or_else(|| Err(Error::Invalid("the reader has stopped".to_owned()))),
        None => std::future::pending().await,
    }
}
