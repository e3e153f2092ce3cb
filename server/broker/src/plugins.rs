//! The plugins of this node: which modules and deployments the cluster has, and the tasks that run them.
//!
//! ```text
//! __millstream_plugins ──► follower ──► modules: files, loaded where something uses them ─┐
//! __millstream_deployments ──► follower ──► deployments ──► stream_tasks: supervisor ──► a task a partition
//! ```
//! Always: what shows here has been read from the two topics; nothing else changes it. Nothing of this costs more than two
//! waiting futures before the topics exist.

mod check;
mod deployments;
mod follower;
mod incoming;
mod modules;
mod running;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use client::{CallContext, Client};
use plugin::deployment::{DEPLOYMENTS_TOPIC, PLUGINS_TOPIC};
use plugin::{Host, RunningPlugins};
use tokio::task::JoinSet;

use crate::node::Broker;
use crate::stream_tasks::{Stores, StoresSettings};
use crate::stream_tasks::{Supervisor, TaskBoard, TaskParts};

pub(crate) use check::options as task_options;
pub(crate) use deployments::{Deployments, Processor};
pub(crate) use modules::Modules;
pub(crate) use running::instance_settings;

use follower::{Source, follow};
use running::NodePlugins;

/// How long tasks may take to finish their step when the node stops.
const STOP_WAIT_MAX: Duration = Duration::from_secs(5);
/// Below the data directory: the modules as they were uploaded.
const MODULES_FOLDER: &str = "modules";
/// Below the data directory: the local stores of tasks.
const STORES_FOLDER: &str = "stores";

/// What a node's plugins are made of.
pub struct PluginsParts {
    /// In process: what concerns this node reaches its dispatch.
    pub client: Client,
    pub host: Arc<dyn Host>,
    /// Where the node keeps its data: modules and local stores are folders in it.
    pub data_directory: PathBuf,
}

/// The plugins of a node that runs.
pub struct Plugins {
    running: Arc<NodePlugins>,
    followers: JoinSet<()>,
    supervisor: Supervisor,
}

impl Plugins {
    /// Begins to follow the topics of modules and deployments.
    #[must_use]
    pub fn start(broker: &Arc<Broker>, parts: PluginsParts) -> Self {
        let PluginsParts {
            client,
            host,
            data_directory,
        } = parts;
        let context = CallContext::anonymous();
        let board = Arc::new(TaskBoard::new(broker.id()));
        let modules = Arc::new(Modules::new(data_directory.join(MODULES_FOLDER), host));
        let deployments = Arc::new(Deployments::new(board.clone()));
        let stores = Stores::new(data_directory.join(STORES_FOLDER), StoresSettings::default());
        let reached = [PLUGINS_TOPIC, DEPLOYMENTS_TOPIC].map(|topic| (topic, Arc::new(AtomicBool::new(false))));
        let [of_modules, of_deployments] = reached.clone().map(|(topic, reached)| Source {
            broker: broker.clone(),
            client: client.clone(),
            context: context.clone(),
            topic,
            reached,
        });
        let mut followers = JoinSet::new();
        followers.spawn(follow(of_modules, modules.clone()));
        followers.spawn(follow(of_deployments, deployments.clone()));
        let supervisor = Supervisor::start(TaskParts::new(
            broker.clone(),
            client,
            context,
            modules.clone(),
            deployments.clone(),
            board.clone(),
            Arc::new(stores),
        ));
        Plugins {
            running: Arc::new(NodePlugins {
                broker: broker.clone(),
                reached,
                modules,
                deployments,
                board,
            }),
            followers,
            supervisor,
        }
    }

    /// For those who show the plugins to users.
    #[must_use]
    pub fn running(&self) -> Arc<dyn RunningPlugins> {
        self.running.clone()
    }

    /// Lets every task finish its step; who takes too long is cut off, and goes on from its last commit at the next start.
    pub async fn stop(mut self) {
        self.followers.shutdown().await;
        self.supervisor.stop(STOP_WAIT_MAX).await;
    }
}
