//! A broker from start to stop.

use std::sync::Arc;
use std::time::Duration;

use metadata::{Delta, Image};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};
use tracing::{info, warn};

use crate::assignments;
use crate::directory_watch;
use crate::housekeeping;
use crate::lifecycle::{self, Registration, RegistrationError};
use crate::metadata_listener;
use crate::node::{Broker, BrokerParts};
use crate::partitions::LogDirectoriesError;
use crate::recovered;
use crate::{cleaner, mover, scrubber};

/// How often logs that could not be opened are tried again.
const REOPEN_INTERVAL: Duration = Duration::from_secs(1);

/// One step of the metadata log, in order.
pub type MetadataUpdate = (Arc<Delta>, Arc<Image>);

/// Why a broker does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Registration(#[from] RegistrationError),
    #[error("{0}")]
    CannotGoOn(String),
}

/// A broker that is part of its cluster.
pub struct RunningBroker {
    broker: Arc<Broker>,
    tasks: JoinSet<()>,
    /// Says why the node can serve no longer: its log directories are gone, or the metadata log has ended.
    failed: watch::Receiver<Option<String>>,
}

/// Registers, follows the metadata log and returns when the controller has lifted the fence and this node has followed that:
/// its logs are open then, and clients can be served. The first that asks sees a cluster with a broker in it.
///
/// # Errors
/// If the controller refuses the broker, or the metadata log ends meanwhile.
pub async fn start(
    parts: BrokerParts,
    registration: Registration,
    updates: mpsc::Receiver<MetadataUpdate>,
) -> Result<RunningBroker, StartError> {
    let broker = Broker::new(parts);
    let mut tasks = JoinSet::new();
    let (fail, mut failed) = watch::channel(None);
    tasks.spawn(follow(broker.clone(), updates, fail.clone()));
    tasks.spawn(directory_watch::keep_watch(broker.clone(), fail));
    let epoch = lifecycle::register(&broker, &registration).await?;
    broker.set_epoch(epoch);
    tokio::select! {
        () = lifecycle::catch_up(&broker) => {}
        why = why_failed(&mut failed) => return Err(StartError::CannotGoOn(why)),
    }
    let strays = broker.clone();
    let _ = tokio::task::spawn_blocking(move || housekeeping::set_strays_aside(&strays)).await;
    tasks.spawn(broker.flusher().clone().run());
    tasks.spawn(lifecycle::keep_beating(broker.clone()));
    tasks.spawn(recovered::keep_telling(broker.clone()));
    tasks.spawn(assignments::keep_telling(broker.clone()));
    housekeeping::spawn(&broker, &mut tasks);
    cleaner::start(&broker);
    scrubber::start(&broker);
    let mut views = broker.views();
    tokio::select! {
        shown = views.wait_for(|view| view.shows(broker.id(), epoch)) => drop(shown),
        why = why_failed(&mut failed) => return Err(StartError::CannotGoOn(why)),
    }
    mover::start(&broker);
    info!(broker_id = %broker.id(), broker_epoch = epoch, "broker is running");
    Ok(RunningBroker { broker, tasks, failed })
}

/// Takes in the metadata log step by step, and between the steps opens what could not be opened before.
async fn follow(broker: Arc<Broker>, mut updates: mpsc::Receiver<MetadataUpdate>, fail: watch::Sender<Option<String>>) {
    let mut reopen = interval(REOPEN_INTERVAL);
    reopen.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let update = tokio::select! {
            update = updates.recv() => match update {
                Some(update) => Some(update),
                None => break,
            },
            _ = reopen.tick(), if broker.partitions().has_unopened() => None,
        };
        let broker = broker.clone();
        let applied = tokio::task::spawn_blocking(move || match update {
            Some((delta, image)) => metadata_listener::apply(&broker, &delta, image),
            None => metadata_listener::open_unopened(&broker),
        });
        if let Err(error) = applied.await {
            warn!(%error, "the metadata log cannot be followed any further");
            break;
        }
    }
    let why = "the metadata log cannot be followed any further".to_owned();
    fail.send_if_modified(|known| known.is_none().then(|| *known = Some(why)).is_some());
}

/// Returns when there is a reason.
async fn why_failed(failed: &mut watch::Receiver<Option<String>>) -> String {
    match failed.wait_for(Option::is_some).await {
        Ok(why) => why.clone().unwrap_or_default(),
        Err(_) => "the broker's tasks have ended".to_owned(),
    }
}

impl RunningBroker {
    #[must_use]
    pub fn broker(&self) -> &Arc<Broker> {
        &self.broker
    }

    /// Returns when the broker cannot go on, and why.
    pub async fn failed(&self) -> String {
        why_failed(&mut self.failed.clone()).await
    }

    /// Asks the controller for leave to go. Clients may still be served meanwhile.
    pub async fn leave(&self) {
        lifecycle::leave(&self.broker).await;
    }

    /// Closes every log in good order; gives the epoch under which that was done. Clients must not be served any more.
    ///
    /// # Errors
    /// If a log could not be closed so: the directories must not be marked as clean then.
    pub async fn stop(mut self) -> Result<i64, LogDirectoriesError> {
        self.tasks.shutdown().await;
        let cleaning = self.broker.clone();
        let _ = tokio::task::spawn_blocking(move || {
            cleaning.mover().stop();
            cleaning.cleaner().stop();
            cleaning.scrubber().stop();
        })
        .await;
        self.broker.groups().stop_all();
        let broker = self.broker.clone();
        let epoch = broker.epoch();
        let closed = tokio::task::spawn_blocking(move || {
            let partitions = broker.partitions().all();
            broker.directories().close(&partitions)
        });
        closed.await.map_err(|_| LogDirectoriesError::Closed)??;
        Ok(epoch)
    }
}
