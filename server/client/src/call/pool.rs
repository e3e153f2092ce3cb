//! Connections to other nodes: for each address one that quick calls share, and some that belong to one slow call each.
//!
//! A connection that breaks is replaced by the next call that needs it; while an address refuses, attempts are spaced out
//! by a pause that doubles.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use network::{CallError, Peer};
use protocol::{Request, Response};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until};

use super::version_max;

/// How many slow calls one address answers at a time; a further one waits for its turn.
const EXCLUSIVE_CALLS_MAX: usize = 256;
/// How many connections are kept for the next slow call.
const EXCLUSIVE_IDLE_MAX: usize = 8;
/// How many addresses are remembered before those without an open connection are dropped.
const ADDRESSES_MAX: usize = 1024;
const PAUSE_FIRST: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Whether a call may queue behind others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lane {
    Shared,
    Exclusive,
}

pub(super) struct Pool {
    client_id: String,
    slots: Mutex<BTreeMap<String, Arc<Slot>>>,
}

struct Slot {
    address: String,
    shared: tokio::sync::Mutex<Option<Arc<Peer>>>,
    idle: Mutex<Vec<Peer>>,
    places: Semaphore,
    pacing: Mutex<Pacing>,
}

/// When the next attempt to connect may be made.
#[derive(Default)]
struct Pacing {
    failures: u32,
    not_before: Option<Instant>,
}

impl Pool {
    pub(super) fn new(client_id: &str) -> Self {
        Pool {
            client_id: client_id.to_owned(),
            slots: Mutex::default(),
        }
    }

    /// The shared connection to `address`, opened if there is none.
    pub(super) async fn shared(&self, address: &str) -> Result<Arc<Peer>, CallError> {
        let slot = self.slot(address);
        let mut shared = slot.shared.lock().await;
        if let Some(peer) = shared.as_ref().filter(|peer| peer.is_open()) {
            return Ok(peer.clone());
        }
        let peer = Arc::new(slot.open(&self.client_id).await?);
        *shared = Some(peer.clone());
        Ok(peer)
    }

    pub(super) async fn call(
        &self,
        address: &str,
        lane: Lane,
        request: Request,
        wait: Duration,
    ) -> Result<Response, CallError> {
        match lane {
            Lane::Shared => {
                let peer = self.shared(address).await?;
                let result = call(&peer, request, wait).await;
                if matches!(result, Err(CallError::Timeout { .. })) {
                    self.slot(address).give_up(&peer).await;
                }
                result
            }
            Lane::Exclusive => {
                let slot = self.slot(address);
                let _place = slot.places.acquire().await.expect("the semaphore is never closed");
                let peer = match slot.take_idle() {
                    Some(peer) => peer,
                    None => slot.open(&self.client_id).await?,
                };
                // A caller that stops waiting drops the connection with its unanswered request.
                let response = call(&peer, request, wait).await?;
                slot.keep(peer);
                Ok(response)
            }
        }
    }

    fn slot(&self, address: &str) -> Arc<Slot> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = slots.get(address) {
            return slot.clone();
        }
        if slots.len() >= ADDRESSES_MAX {
            slots.retain(|_, slot| slot.is_in_use());
        }
        let slot = Arc::new(Slot {
            address: address.to_owned(),
            shared: tokio::sync::Mutex::default(),
            idle: Mutex::default(),
            places: Semaphore::new(EXCLUSIVE_CALLS_MAX),
            pacing: Mutex::default(),
        });
        slots.insert(address.to_owned(), slot.clone());
        slot
    }
}

impl Slot {
    fn is_in_use(&self) -> bool {
        let shared = self.shared.try_lock();
        shared.map_or(true, |peer| peer.as_ref().is_some_and(|peer| peer.is_open()))
    }

    /// Lets the next call open another connection than one that has stopped to answer.
    async fn give_up(&self, silent: &Arc<Peer>) {
        let mut shared = self.shared.lock().await;
        if shared.as_ref().is_some_and(|peer| Arc::ptr_eq(peer, silent)) {
            *shared = None;
        }
    }

    fn take_idle(&self) -> Option<Peer> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(Peer::is_open);
        idle.pop()
    }

    fn keep(&self, peer: Peer) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < EXCLUSIVE_IDLE_MAX && peer.is_open() {
            idle.push(peer);
        }
    }

    async fn open(&self, client_id: &str) -> Result<Peer, CallError> {
        let not_before = self.pacing.lock().unwrap_or_else(PoisonError::into_inner).not_before;
        if let Some(not_before) = not_before {
            sleep_until(not_before).await;
        }
        let opened = Peer::connect(&self.address, client_id).await;
        let mut pacing = self.pacing.lock().unwrap_or_else(PoisonError::into_inner);
        *pacing = match &opened {
            Ok(_) => Pacing::default(),
            Err(_) => Pacing {
                not_before: Some(Instant::now() + pause_after(pacing.failures)),
                failures: pacing.failures.saturating_add(1),
            },
        };
        opened
    }
}

fn pause_after(failures: u32) -> Duration {
    PAUSE_FIRST.saturating_mul(2u32.saturating_pow(failures)).min(PAUSE_MAX)
}

async fn call(peer: &Peer, request: Request, wait: Duration) -> Result<Response, CallError> {
    let version = peer.version(request.api_key(), version_max(request.api_key()))?;
    peer.call_version(request, version, wait).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_between_attempts_double_up_to_a_second() {
        let pauses: Vec<u128> = (0..7).map(|failures| pause_after(failures).as_millis()).collect();
        assert_eq!(pauses, [50, 100, 200, 400, 800, 1000, 1000]);
        assert_eq!(pause_after(u32::MAX), PAUSE_MAX);
    }
}
