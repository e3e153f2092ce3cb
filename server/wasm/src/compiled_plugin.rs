//! A module, looked at and compiled: what [`plugin::Host::load`] gives.
//!
//! Everything that can be known of a component without its owner's settings is checked here, so that a wrong one is
//! refused at upload with the import or export named, and not at its first row.

pub(crate) mod cache;
mod describe;
mod worlds;

use std::sync::Arc;

use plugin::host::{Digest, InstanceSettings, MODULE_BYTES_MAX, Module, ModuleError, ModuleInfo, World};
use plugin::{Partitioner, Serde, Validator, WindowAggregator};
use sha2::{Digest as _, Sha256};
use wasmtime::Store;
use wasmtime::component::{Component, Instance, InstancePre};

use crate::bindings::exports::millstream::plugin as exports;
use crate::engine::Shared;
use crate::host::HostState;
use crate::partitioner::GuestPartitioner;
use crate::serde::GuestSerde;
use crate::validator::GuestValidator;
use crate::window_aggregator::GuestAggregator;

/// How a WebAssembly file begins; then comes the version and what the file holds.
const MAGIC: &[u8] = b"\0asm";
const CORE_VERSION: &[u8] = &[1, 0, 0, 0];

#[derive(Clone)]
pub(crate) struct CompiledPlugin {
    pub(crate) shared: Arc<Shared>,
    info: Arc<ModuleInfo>,
    pub(crate) ready: InstancePre<HostState>,
    pub(crate) lifecycle: exports::lifecycle::GuestIndices,
    pub(crate) indices: Indices,
}

/// Where a component's exports are.
#[derive(Clone)]
pub(crate) enum Indices {
    Partitioner(exports::partitioning::GuestIndices),
    Serde(exports::coding::GuestIndices),
    Validator(exports::validation::GuestIndices),
    Aggregator {
        aggregation: exports::aggregation::GuestIndices,
        keying: Option<exports::keying::GuestIndices>,
    },
}

impl CompiledPlugin {
    /// # Errors
    /// If the bytes cannot be a component.
    pub(crate) fn digest(module: &[u8]) -> Result<Digest, ModuleError> {
        let (size, limit) = (module.len(), MODULE_BYTES_MAX);
        if size > limit {
            return Err(ModuleError::TooLarge { size, limit });
        }
        match module.strip_prefix(MAGIC) {
            None => Err(ModuleError::NotWasm),
            Some(rest) if rest.starts_with(CORE_VERSION) => Err(ModuleError::CoreModule),
            Some(_) => Ok(Digest::new(Sha256::digest(module).into())),
        }
    }

    /// # Errors
    /// If the component does not compile, fits no kind of plugin, or cannot describe itself.
    pub(crate) fn load(shared: &Arc<Shared>, digest: Digest, module: &[u8]) -> Result<Self, ModuleError> {
        let component = compile(shared, digest, module)?;
        let world = worlds::recognize(&component, &shared.wasmtime)?;
        let unfit = |error: wasmtime::Error| ModuleError::Interface(format!("{error:#}"));
        let ready = shared.linker.instantiate_pre(&component).map_err(unfit)?;
        let lifecycle = exports::lifecycle::GuestIndices::new(&ready).map_err(unfit)?;
        let indices = Indices::find(world, &ready).map_err(unfit)?;
        let descriptor = describe::describe(shared, &component, &lifecycle, &indices)?;
        let info = ModuleInfo {
            digest,
            size_bytes: module.len() as u64,
            world,
            descriptor,
        };
        Ok(CompiledPlugin {
            shared: Arc::clone(shared),
            info: Arc::new(info),
            ready,
            lifecycle,
            indices,
        })
    }

    fn unlike(&self, wanted: &'static str) -> ModuleError {
        let got = self.info.world;
        ModuleError::Kind { wanted, got }
    }
}

fn compile(shared: &Shared, digest: Digest, module: &[u8]) -> Result<Component, ModuleError> {
    let engine = &shared.wasmtime;
    if let Some(component) = shared.cache.as_ref().and_then(|cache| cache.load(engine, digest)) {
        return Ok(component);
    }
    let component =
        Component::from_binary(engine, module).map_err(|error| ModuleError::Compile(format!("{error:#}")))?;
    if let Some(cache) = &shared.cache {
        cache.store(digest, &component);
    }
    Ok(component)
}

impl Indices {
    fn find(world: World, ready: &InstancePre<HostState>) -> wasmtime::Result<Self> {
        Ok(match world {
            World::Partitioner => Indices::Partitioner(exports::partitioning::GuestIndices::new(ready)?),
            World::Serde => Indices::Serde(exports::coding::GuestIndices::new(ready)?),
            World::Validator => Indices::Validator(exports::validation::GuestIndices::new(ready)?),
            World::WindowAggregator => Indices::Aggregator {
                aggregation: exports::aggregation::GuestIndices::new(ready)?,
                keying: None,
            },
            World::KeyedAggregator | World::MigratingAggregator => Indices::Aggregator {
                aggregation: exports::aggregation::GuestIndices::new(ready)?,
                keying: Some(exports::keying::GuestIndices::new(ready)?),
            },
        })
    }

    /// The exports' types are looked at when they are loaded.
    fn check(&self, store: &mut Store<HostState>, instance: &Instance) -> wasmtime::Result<()> {
        match self {
            Indices::Partitioner(indices) => indices.load(store, instance).map(drop),
            Indices::Serde(indices) => indices.load(store, instance).map(drop),
            Indices::Validator(indices) => indices.load(store, instance).map(drop),
            Indices::Aggregator { aggregation, keying } => {
                aggregation.load(&mut *store, instance)?;
                keying
                    .as_ref()
                    .map_or(Ok(()), |keying| keying.load(store, instance).map(drop))
            }
        }
    }
}

impl Module for CompiledPlugin {
    fn info(&self) -> &ModuleInfo {
        &self.info
    }

    fn partitioner(&self, settings: InstanceSettings) -> Result<Box<dyn Partitioner>, ModuleError> {
        match &self.indices {
            Indices::Partitioner(indices) => Ok(Box::new(GuestPartitioner::start(self, settings, indices)?)),
            _ => Err(self.unlike("partitioner")),
        }
    }

    fn serde(&self, settings: InstanceSettings) -> Result<Box<dyn Serde>, ModuleError> {
        match &self.indices {
            Indices::Serde(indices) => Ok(Box::new(GuestSerde::start(self, settings, indices)?)),
            _ => Err(self.unlike("serde")),
        }
    }

    fn validator(&self, settings: InstanceSettings) -> Result<Box<dyn Validator>, ModuleError> {
        match &self.indices {
            Indices::Validator(indices) => Ok(Box::new(GuestValidator::start(self, settings, indices)?)),
            _ => Err(self.unlike("validator")),
        }
    }

    fn window_aggregator(&self, settings: InstanceSettings) -> Result<Box<dyn WindowAggregator>, ModuleError> {
        match &self.indices {
            Indices::Aggregator { aggregation, keying } => Ok(Box::new(GuestAggregator::start(
                self,
                settings,
                aggregation,
                keying.as_ref(),
            )?)),
            _ => Err(self.unlike("window aggregator")),
        }
    }
}
