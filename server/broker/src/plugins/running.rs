//! What the node's plugins show to those who serve users.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use model::{PartitionIndex, TopicName};
use plugin::deployment::{Deployment, ProcessorName, TopicPlugins};
use plugin::descriptor::Task;
use plugin::running::{Deployed, DeploymentError, Followed, ProcessorStatus};
use plugin::{
    Digest, InstanceLimits, InstanceSettings, Logs, Measurements, Module, ModuleError, ModuleInfo, RunningPlugins,
};

use streams::changelog::ChangelogKey;

use super::check;
use super::{Deployments, Modules};
use crate::node::Broker;
use crate::stream_tasks::TaskBoard;

pub(super) struct NodePlugins {
    pub(super) broker: Arc<Broker>,
    /// The topics that are followed, and whether their ends have been seen.
    pub(super) reached: [(&'static str, Arc<AtomicBool>); 2],
    pub(super) modules: Arc<Modules>,
    pub(super) deployments: Arc<Deployments>,
    pub(super) board: Arc<TaskBoard>,
}

/// What an instance of a processor's module is started with.
pub(crate) fn instance_settings(
    name: &ProcessorName,
    deployment: &Deployment,
    partition: PartitionIndex,
    logs: Arc<Logs>,
    measurements: Arc<Measurements>,
) -> InstanceSettings {
    InstanceSettings {
        task: Task {
            application: "millstream".to_owned(),
            processor: name.to_string(),
            version: deployment.version.to_string(),
            partition,
            inputs: vec![deployment.input.to_string()],
            outputs: vec![deployment.output.to_string()],
            stores: Vec::new(),
            attempt: 0,
            replaying: false,
        },
        config: Arc::new(deployment.config.clone()),
        limits: InstanceLimits::PROCESSOR,
        logs,
        measurements,
    }
}

impl NodePlugins {
    /// Whether the topic is the one that the plugins were bound to.
    fn is_bound_still(&self, topic: &TopicName, plugins: &TopicPlugins) -> bool {
        let view = self.broker.view();
        let known = view.image.topics.by_name(topic.as_str());
        known.is_some_and(|known| plugins.topic_id.is_none_or(|id| id == known.id))
    }
}

impl RunningPlugins for NodePlugins {
    fn followed(&self) -> Followed {
        Followed {
            plugins: self.modules.followed_to(),
            deployments: self.deployments.followed_to(),
        }
    }

    fn is_caught_up(&self) -> bool {
        let view = self.broker.view();
        self.reached
            .iter()
            .all(|(topic, reached)| reached.load(Ordering::Acquire) || view.image.topics.by_name(topic).is_none())
    }

    fn modules(&self) -> Vec<ModuleInfo> {
        self.modules.infos()
    }

    fn module(&self, digest: &Digest) -> Option<ModuleInfo> {
        self.modules.info(digest)
    }

    fn load(&self, digest: &Digest) -> Result<Arc<dyn Module>, DeploymentError> {
        self.modules.load(digest)
    }

    fn check(&self, name: &ProcessorName, deployment: &Deployment) -> Result<(), DeploymentError> {
        let module = self.modules.load(&deployment.module)?;
        let others: Vec<_> = self.processors();
        check::check(name, deployment, module.info(), &others)?;
        // An instance says whether it takes the configuration; what it logs meanwhile concerns nobody.
        let settings = instance_settings(name, deployment, PartitionIndex::new(0), Arc::default(), Arc::default());
        match module.window_aggregator(settings) {
            Err(ModuleError::Start(reason)) => Err(DeploymentError::Field {
                field: "config",
                reason: format!("the module refuses it: {reason}"),
            }),
            made => Ok(made.map(drop)?),
        }
    }

    fn processors(&self) -> Vec<Deployed> {
        let processors = self.deployments.processors().into_iter();
        processors.map(|processor| processor.deployed).collect()
    }

    fn processor(&self, name: &ProcessorName) -> Option<Deployed> {
        self.deployments.processor(name).map(|processor| processor.deployed)
    }

    fn status(&self, name: &ProcessorName) -> Option<ProcessorStatus> {
        let deployed = self.processor(name)?;
        Some(ProcessorStatus {
            deployed,
            tasks: self.board.of(name),
        })
    }

    fn logs(&self, name: &ProcessorName) -> Option<Arc<Logs>> {
        self.deployments.processor(name).map(|processor| processor.logs)
    }

    fn measurements(&self, name: &ProcessorName) -> Option<Arc<Measurements>> {
        self.deployments.processor(name).map(|processor| processor.measurements)
    }

    fn topic_plugins(&self, topic: &TopicName) -> Option<Arc<TopicPlugins>> {
        self.deployments
            .topic(topic)
            .filter(|plugins| self.is_bound_still(topic, plugins))
    }

    fn is_changelog_key(&self, key: &[u8]) -> bool {
        ChangelogKey::decode(Bytes::copy_from_slice(key)).is_ok()
    }

    fn users(&self, digest: &Digest) -> Vec<String> {
        self.deployments
            .users(digest, |topic, plugins| self.is_bound_still(topic, plugins))
    }
}
