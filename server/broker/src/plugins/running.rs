//! What the node's plugins show to those who serve users.

use std::sync::Arc;

use model::TopicName;
use plugin::deployment::{Deployment, ProcessorName, TopicPlugins};
use plugin::running::{Deployed, DeploymentError, Followed, ProcessorStatus};
use plugin::{Digest, Logs, Measurements, Module, ModuleInfo, RunningPlugins};

use super::check;
use super::{Deployments, Modules};
use crate::node::Broker;
use crate::stream_tasks::TaskBoard;

pub(super) struct NodePlugins {
    pub(super) broker: Arc<Broker>,
    pub(super) modules: Arc<Modules>,
    pub(super) deployments: Arc<Deployments>,
    pub(super) board: Arc<TaskBoard>,
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
        check::check(name, deployment, module.info(), &others)
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

    fn users(&self, digest: &Digest) -> Vec<String> {
        self.deployments
            .users(digest, |topic, plugins| self.is_bound_still(topic, plugins))
    }
}
