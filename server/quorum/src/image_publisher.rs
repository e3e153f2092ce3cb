//! Committed images on their way to the brokers of this process, in order and bounded.
//!
//! Each subscriber has one slot. When it takes longer than the next commit, what it has not seen becomes one larger
//! delta: it never misses a change, it holds nobody up, and nothing queues.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use metadata::{Delta, Image};
use tokio::sync::{Notify, watch};

/// What changed, and what it led to.
#[derive(Clone, Debug)]
pub struct Published {
    pub delta: Arc<Delta>,
    pub image: Arc<Image>,
}

#[derive(Default)]
struct Slot {
    pending: Mutex<Pending>,
    arrived: Notify,
}

#[derive(Default)]
struct Pending {
    next: Option<(Delta, Arc<Image>)>,
    ended: bool,
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The receiving end. The first image comes as the delta from nothing.
pub struct ImageStream {
    slot: Arc<Slot>,
}

impl ImageStream {
    /// The next change; `None` once the controller has stopped and everything was taken.
    pub async fn next(&mut self) -> Option<Published> {
        loop {
            let arrived = self.slot.arrived.notified();
            {
                let mut pending = self.slot.lock();
                if let Some((delta, image)) = pending.next.take() {
                    return Some(Published {
                        delta: Arc::new(delta),
                        image,
                    });
                }
                if pending.ended {
                    return None;
                }
            }
            arrived.await;
        }
    }
}

/// The sending end, shared by the driver and those who hand out subscriptions.
#[derive(Clone)]
pub(crate) struct Publisher {
    shared: Arc<Mutex<Shared>>,
    latest: watch::Sender<Arc<Image>>,
}

#[derive(Default)]
struct Shared {
    slots: Vec<Arc<Slot>>,
    /// Whether an image was published yet.
    has_image: bool,
    ended: bool,
}

impl Publisher {
    pub(crate) fn new() -> Self {
        Publisher {
            shared: Arc::default(),
            latest: watch::Sender::new(Arc::default()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The latest committed image; the empty one before the first.
    pub(crate) fn latest(&self) -> Arc<Image> {
        self.latest.borrow().clone()
    }

    /// Resolves when an image that satisfies `condition` is committed; `None` if the controller stops before.
    pub(crate) async fn wait_for(&self, condition: impl FnMut(&Arc<Image>) -> bool) -> Option<Arc<Image>> {
        let mut receiver = self.latest.subscribe();
        receiver.wait_for(condition).await.ok().map(|image| image.clone())
    }

    pub(crate) fn subscribe(&self) -> ImageStream {
        let mut shared = self.lock();
        let slot = Arc::new(Slot::default());
        {
            let mut pending = slot.lock();
            pending.ended = shared.ended;
            if shared.has_image {
                let image = self.latest();
                pending.next = Some((Delta::of_everything(&image), image));
            }
        }
        shared.slots.push(slot.clone());
        ImageStream { slot }
    }

    pub(crate) fn publish(&self, delta: &Delta, image: Arc<Image>) {
        let mut shared = self.lock();
        let is_first = !std::mem::replace(&mut shared.has_image, true);
        // A slot that nobody holds any more is dropped.
        shared.slots.retain(|slot| Arc::strong_count(slot) > 1);
        for slot in &shared.slots {
            let mut pending = slot.lock();
            let delta = if is_first {
                Delta::of_everything(&image)
            } else {
                delta.clone()
            };
            pending.next = Some(match pending.next.take() {
                None => (delta, image.clone()),
                Some((mut unseen, _)) => {
                    unseen.absorb(delta);
                    (unseen, image.clone())
                }
            });
            slot.arrived.notify_one();
        }
        self.latest.send_replace(image);
    }

    pub(crate) fn end(&self) {
        let mut shared = self.lock();
        shared.ended = true;
        for slot in &shared.slots {
            slot.lock().ended = true;
            slot.arrived.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use model::{BrokerId, Offset};

    use super::*;

    fn image(end: i64) -> Arc<Image> {
        Arc::new(Image {
            end_offset: Offset::new(end),
            ..Image::default()
        })
    }

    fn delta_of(broker: i32) -> Delta {
        Delta {
            brokers: [BrokerId::new(broker)].into(),
            ..Delta::default()
        }
    }

    #[tokio::test]
    async fn a_slow_subscriber_gets_what_it_missed_in_one_delta() {
        let publisher = Publisher::new();
        let mut stream = publisher.subscribe();
        publisher.publish(&Delta::default(), image(3));
        assert!(stream.next().await.unwrap().delta.features);
        publisher.publish(&delta_of(1), image(4));
        publisher.publish(&delta_of(2), image(5));
        let published = stream.next().await.unwrap();
        assert_eq!(published.delta.brokers.len(), 2);
        assert_eq!(published.image.end_offset, Offset::new(5));
    }

    #[tokio::test]
    async fn a_late_subscriber_begins_with_everything() {
        let publisher = Publisher::new();
        publisher.publish(&delta_of(1), image(3));
        let mut stream = publisher.subscribe();
        let published = stream.next().await.unwrap();
        assert!(published.delta.features);
        assert_eq!(published.image.end_offset, Offset::new(3));
    }

    #[tokio::test]
    async fn the_stream_ends_with_the_controller() {
        let publisher = Publisher::new();
        let mut stream = publisher.subscribe();
        publisher.publish(&delta_of(1), image(3));
        publisher.end();
        assert!(stream.next().await.is_some());
        assert!(stream.next().await.is_none());
    }
}
