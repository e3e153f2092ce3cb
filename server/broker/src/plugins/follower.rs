//! Follows one compacted topic of one partition from its start, for as long as the node runs.
//!
//! The topic may not exist yet, go away, come again as another one, or be out of reach for a while: whoever keeps what it
//! says is told to forget everything where it is no longer the same topic, and nothing where it is only out of reach.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use client::{CallContext, Client, Error, FetchLimits, Fetched, Isolation, Start};
use model::record_batch::Record;
use model::{Offset, PartitionIndex, TopicId, TopicName, TopicPartition};
use tokio::sync::watch;
use tracing::{info, warn};

use crate::node::{Broker, View};
use crate::stream_tasks::BackOff;

/// How long one fetch waits for a new record.
const FETCH_WAIT: Duration = Duration::from_secs(5);
/// What one fetch may bring: a first batch that is larger comes whole.
const FETCH_BYTES_MAX: usize = 1 << 20;
const PARTITION: PartitionIndex = PartitionIndex::new(0);

/// Who keeps what a topic says.
pub(super) trait Follower: Send + Sync + 'static {
    /// The topic is gone or another one: nothing of what it said holds any more.
    fn reset(&self);

    /// Takes records in the order of the log. Called on a thread that may wait. `at_end`: there are no more for now.
    fn take(&self, records: Vec<Record>, at_end: bool);

    /// Returns when what was taken shows everywhere, or does not within reason.
    fn settled(&self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// Everything below `next` has been taken.
    fn followed(&self, next: Offset);
}

/// Which topic, and by whom.
pub(super) struct Source {
    pub(super) broker: Arc<Broker>,
    pub(super) client: Client,
    pub(super) context: CallContext,
    pub(super) topic: &'static str,
    /// The topic's end has been seen: told to those who must know what is not there.
    pub(super) reached: Arc<AtomicBool>,
}

/// Never returns.
pub(super) async fn follow<F: Follower>(source: Source, follower: Arc<F>) {
    let mut views = source.broker.views();
    let mut back_off = BackOff::default();
    let mut begun: Option<TopicId> = None;
    let mut position = Start::Earliest;
    loop {
        let id = led(&mut views, source.topic).await;
        if begun.is_some_and(|begun| begun != id) {
            info!(
                topic = source.topic,
                "the topic was made anew: following it from its start"
            );
            forget(&*follower);
        }
        if begun != Some(id) {
            source.reached.store(false, Ordering::Release);
            begun = Some(id);
            position = Start::Earliest;
        }
        let fetched = tokio::select! {
            fetched = source.fetch(position) => fetched,
            () = gone(&source.broker, source.topic, id) => {
                forget(&*follower);
                begun = None;
                continue;
            }
        };
        match fetched {
            Ok(fetched) => {
                back_off.reset();
                position = Start::Offset(fetched.next);
                let is_end = fetched.next >= fetched.end;
                take(&follower, fetched).await;
                source.reached.fetch_or(is_end, Ordering::AcqRel);
            }
            Err(Error::OutOfRange { log_start, .. }) => {
                warn!(topic = source.topic, offset = %log_start, "records were deleted: following the topic from its start");
                forget(&*follower);
                position = Start::Earliest;
                tokio::time::sleep(back_off.next()).await;
            }
            Err(error) => {
                let error = crate::errors::describe(&error);
                warn!(topic = source.topic, error, "the topic cannot be followed for now");
                tokio::time::sleep(back_off.next()).await;
            }
        }
    }
}

fn forget(follower: &impl Follower) {
    follower.reset();
    follower.followed(Offset::ZERO);
}

async fn take<F: Follower>(follower: &Arc<F>, fetched: Fetched) {
    let Fetched { records, next, end, .. } = fetched;
    let on_pool = follower.clone();
    let taken = tokio::task::spawn_blocking(move || on_pool.take(records, next >= end)).await;
    if let Err(error) = taken {
        warn!(%error, "a record of the topic broke its reader");
    }
    follower.settled().await;
    follower.followed(next);
}

impl Source {
    async fn fetch(&self, position: Start) -> Result<Fetched, Error> {
        let partition = TopicPartition {
            topic: TopicName::new(self.topic).expect("the names of internal topics are names"),
            partition: PARTITION,
        };
        let limits = FetchLimits {
            // Batches come whole.
            records_max: usize::MAX,
            bytes_max: FETCH_BYTES_MAX,
            wait: FETCH_WAIT,
            isolation: Isolation::ReadCommitted,
        };
        self.client.fetch(&self.context, &partition, position, &limits).await
    }
}

fn id_of(view: &View, topic: &str) -> Option<TopicId> {
    let topic = view.image.topics.by_name(topic)?;
    let partition = topic.partitions.get(&PARTITION)?;
    partition.leader.map(|_| topic.id)
}

/// Waits until the topic has a leader.
async fn led(views: &mut watch::Receiver<View>, topic: &str) -> TopicId {
    loop {
        let seen = id_of(&views.borrow_and_update(), topic);
        match seen {
            Some(id) => return id,
            None if views.changed().await.is_err() => std::future::pending::<()>().await,
            None => {}
        }
    }
}

/// Returns when the topic is no longer the one with this id.
async fn gone(broker: &Arc<Broker>, topic: &str, id: TopicId) {
    let mut views = broker.views();
    let other = |view: &View| view.image.topics.by_name(topic).is_none_or(|topic| topic.id != id);
    if views.wait_for(other).await.is_err() {
        std::future::pending::<()>().await;
    }
}
