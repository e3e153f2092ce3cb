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
            forget(&source, &*follower);
        }
        if begun != Some(id) {
            begun = Some(id);
            position = Start::Earliest;
        }
        let fetched = tokio::select! {
            fetched = source.fetch(position) => fetched,
            () = gone(&source.broker, source.topic, id) => {
                forget(&source, &*follower);
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
                forget(&source, &*follower);
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

fn forget(source: &Source, follower: &impl Follower) {
    // First, so that nobody takes what is forgotten for what is not there.
    source.reached.store(false, Ordering::Release);
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

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, mpsc};

    use super::*;
    use crate::stream_tasks::tests::node::TestNode;
    use crate::stream_tasks::tests::run;

    const TOPIC: &str = "followed";

    /// Holds what it has taken until the test lets it go on; says at each reset whether the end counts as reached.
    struct Held {
        reached: Arc<AtomicBool>,
        taken: watch::Sender<usize>,
        go_on: Mutex<mpsc::Receiver<()>>,
        reached_at_reset: watch::Sender<Option<bool>>,
    }

    impl Follower for Held {
        fn reset(&self) {
            self.reached_at_reset
                .send_replace(Some(self.reached.load(Ordering::Acquire)));
        }

        fn take(&self, records: Vec<Record>, _: bool) {
            self.taken.send_modify(|taken| *taken += records.len());
            // The test has ended if nobody can say it any more.
            let _ = self.go_on.lock().unwrap().recv();
        }

        fn followed(&self, _: Offset) {}
    }

    #[test]
    fn what_is_forgotten_since_records_were_deleted_is_not_caught_up() {
        run(async {
            let folder = tempfile::tempdir().unwrap();
            let node = TestNode::start(folder.path());
            node.topics(&[TOPIC]);
            node.send(TOPIC, "k", None).await;
            let reached = Arc::new(AtomicBool::new(false));
            let (taken, mut takes) = watch::channel(0);
            let (let_go_on, go_on) = mpsc::channel();
            let (reached_at_reset, mut resets) = watch::channel(None);
            let held = Arc::new(Held {
                reached: reached.clone(),
                taken,
                go_on: Mutex::new(go_on),
                reached_at_reset,
            });
            let source = Source {
                broker: node.broker.clone(),
                client: node.client.clone(),
                context: CallContext::anonymous(),
                topic: TOPIC,
                reached: reached.clone(),
            };
            let follower = tokio::spawn(follow(source, held));
            takes.wait_for(|taken| *taken == 1).await.unwrap();
            // While it holds the last record, another one comes and both go.
            node.send(TOPIC, "k", None).await;
            let partition = node.broker.partitions().by_name(TOPIC, 0).unwrap();
            partition.delete_records_before(None).unwrap();
            let_go_on.send(()).unwrap();
            let at_reset = *resets.wait_for(Option::is_some).await.unwrap();
            assert_eq!(at_reset, Some(false));
            // It reads on from where the log begins now.
            node.send(TOPIC, "k", None).await;
            takes.wait_for(|taken| *taken == 2).await.unwrap();
            let_go_on.send(()).unwrap();
            while !reached.load(Ordering::Acquire) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            follower.abort();
            node.stop().await;
        });
    }
}
