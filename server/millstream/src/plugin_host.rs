//! The host of plugins, made when the first module comes: a node without plugins has no engine.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use plugin::{Host, Module, ModuleError};
use wasm::Engine;

pub(crate) struct LazyHost {
    /// For native code.
    folder: PathBuf,
    engine: Mutex<Option<Engine>>,
}

impl LazyHost {
    pub(crate) fn new(folder: PathBuf) -> Self {
        LazyHost {
            folder,
            engine: Mutex::new(None),
        }
    }

    fn engine(&self) -> Result<Engine, ModuleError> {
        // The engine is there or not: a thread that panicked left nothing half done.
        let mut engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(engine) = engine.as_ref() {
            return Ok(engine.clone());
        }
        let made = Engine::new(Some(self.folder.clone()));
        let made = made.map_err(|error| ModuleError::Start(format!("{:#}", anyhow::Error::new(error))))?;
        Ok(engine.insert(made).clone())
    }
}

impl Host for LazyHost {
    fn load(&self, module: &[u8]) -> Result<Arc<dyn Module>, ModuleError> {
        self.engine()?.load(module)
    }
}
