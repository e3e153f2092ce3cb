//! One thread beside the requests that works, waits and is told to end: the scrubber's and the mover's.
//!
//! Whoever works there asks [`Background::pause`] between two pieces of work; the node waits for its end before it closes
//! the logs.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tracing::error;

use crate::node::Broker;

/// The thread, from before its start to behind its end.
pub(crate) struct Background {
    /// As the system shows it.
    name: &'static str,
    state: Mutex<State>,
    /// Told when there is something to do, or the thread is to end.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    stopping: bool,
    woken: bool,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    pub(crate) fn new(name: &'static str) -> Self {
        Background {
            name,
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Starts the thread. Where that fails it is told, and the node goes on without.
    pub(crate) fn start(&self, broker: &Arc<Broker>, run: impl FnOnce(&Arc<Broker>) + Send + 'static) {
        let broker = broker.clone();
        let thread = std::thread::Builder::new()
            .name(self.name.to_owned())
            .spawn(move || run(&broker));
        match thread {
            Ok(thread) => self.lock().thread = Some(thread),
            Err(error) => error!(thread = self.name, %error, "a thread does not start"),
        }
    }

    /// There is something to do.
    pub(crate) fn wake(&self) {
        self.lock().woken = true;
        self.changed.notify_all();
    }

    /// Ends the thread, between two pieces of work if need be, and waits for that.
    pub(crate) fn stop(&self) {
        let thread = {
            let mut state = self.lock();
            state.stopping = true;
            state.thread.take()
        };
        self.changed.notify_all();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            error!(thread = self.name, "a thread has broken off");
        }
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.lock().stopping
    }

    /// Waits, at most so long; true if the thread is to end.
    pub(crate) fn pause(&self, wait: Duration) -> bool {
        let state = self.lock();
        let waited = self.changed.wait_timeout_while(state, wait, |state| !state.stopping);
        waited.unwrap_or_else(PoisonError::into_inner).0.stopping
    }

    /// Waits until there may be something to do, at most so long; true if the thread is to end.
    pub(crate) fn idle(&self, wait: Duration) -> bool {
        let state = self.lock();
        let is_idle = |state: &mut State| !state.stopping && !state.woken;
        let waited = self.changed.wait_timeout_while(state, wait, is_idle);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        state.woken = false;
        state.stopping
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
