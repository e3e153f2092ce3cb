//! Instances of one plugin for one topic and role, kept between requests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use model::{PartitionIndex, TopicName};
use plugin::descriptor::Task;
use plugin::measurements::{Measurement, SeriesName};
use plugin::running::DeploymentError;
use plugin::{
    Digest, InstanceLimits, InstanceSettings, Logs, Measurements, Module, ModuleError, Partitioner, RunningPlugins,
    Serde,
};
use tokio::sync::Semaphore;

/// How many instances of one topic and role there are; more requests wait for one.
const INSTANCES_MAX: usize = 4;

/// What instances are made of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Binding {
    pub(super) digest: Digest,
    pub(super) config: Arc<BTreeMap<String, String>>,
}

/// A kind of instance that modules make.
pub(super) trait Instance: Send + 'static {
    fn make(module: &dyn Module, settings: InstanceSettings) -> Result<Box<Self>, ModuleError>;
}

impl Instance for dyn Serde {
    fn make(module: &dyn Module, settings: InstanceSettings) -> Result<Box<Self>, ModuleError> {
        module.serde(settings)
    }
}

impl Instance for dyn Partitioner {
    fn make(module: &dyn Module, settings: InstanceSettings) -> Result<Box<Self>, ModuleError> {
        module.partitioner(settings)
    }
}

pub(super) struct Pool<T: ?Sized> {
    topic: TopicName,
    binding: Binding,
    /// Those that nobody uses at the moment.
    idle: Mutex<Vec<Box<T>>>,
    room: Arc<Semaphore>,
    logs: Arc<Logs>,
    measurements: Arc<Measurements>,
}

impl<T: ?Sized + Instance> Pool<T> {
    pub(super) fn new(topic: &TopicName, binding: Binding) -> Self {
        Pool {
            topic: topic.clone(),
            binding,
            idle: Mutex::default(),
            room: Arc::new(Semaphore::new(INSTANCES_MAX)),
            logs: Arc::default(),
            measurements: Arc::default(),
        }
    }

    pub(super) fn binding(&self) -> &Binding {
        &self.binding
    }

    /// A place in it is held by who calls [`Pool::with`].
    pub(super) fn room(&self) -> Arc<Semaphore> {
        self.room.clone()
    }

    pub(super) fn measured(&self) -> Vec<(SeriesName, Measurement)> {
        self.measurements.series()
    }

    /// Works with an instance. Waits for the disk, and may compile.
    pub(super) fn with<R>(
        &self,
        plugins: &dyn RunningPlugins,
        work: impl FnOnce(&mut T) -> R,
    ) -> Result<R, DeploymentError> {
        let kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut instance = match kept {
            Some(instance) => instance,
            None => self.make(plugins)?,
        };
        let answer = work(&mut instance);
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(instance);
        Ok(answer)
    }

    pub(super) fn make(&self, plugins: &dyn RunningPlugins) -> Result<Box<T>, DeploymentError> {
        let module = plugins.load(&self.binding.digest)?;
        let topics = vec![self.topic.to_string()];
        let task = Task {
            application: String::new(),
            processor: self.topic.to_string(),
            version: String::new(),
            partition: PartitionIndex::new(0),
            inputs: topics.clone(),
            outputs: topics,
            stores: Vec::new(),
            attempt: 0,
            replaying: false,
        };
        let settings = InstanceSettings {
            task,
            config: self.binding.config.clone(),
            limits: InstanceLimits::REQUEST,
            logs: self.logs.clone(),
            measurements: self.measurements.clone(),
        };
        Ok(T::make(&*module, settings)?)
    }
}
