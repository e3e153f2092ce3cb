//! The process's one engine: compiles modules, knows those that are loaded, and ticks while guests run.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::Thread;

use plugin::host::{Digest, Host, Module, ModuleError};
use wasmtime::Config;
use wasmtime::component::Linker;

use crate::compiled_plugin::{CompiledPlugin, cache::Cache};
use crate::deadline::TICK;
use crate::host::{self, HostState};
use crate::limits::STACK_BYTES_MAX;

/// Ticks without a call in flight after which the ticker sleeps until there is one.
const IDLE_TICKS_MAX: u32 = 100;
/// Most frames of a guest's stack that a trap's reason shows.
const BACKTRACE_FRAMES_MAX: usize = 12;

/// Why there is no engine.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("this machine cannot run WebAssembly")]
    Machine(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("prepare the folder for compiled modules")]
    Cache(#[source] std::io::Error),
    #[error("start the ticker")]
    Ticker(#[source] std::io::Error),
}

/// A cheap handle; all clones are the same engine.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) wasmtime: wasmtime::Engine,
    pub(crate) linker: Linker<HostState>,
    pub(crate) cache: Option<Cache>,
    ticker: Ticker,
    /// Modules that somebody still holds.
    loaded: Mutex<BTreeMap<Digest, Weak<CompiledPlugin>>>,
    /// One module is compiled at a time, and none twice.
    compiling: Mutex<()>,
}

impl Engine {
    /// `cache` is a folder for native code, made if it is not there; without one, modules are compiled at each start.
    ///
    /// # Errors
    /// If the machine cannot run WebAssembly, or the folder cannot be used.
    pub fn new(cache: Option<PathBuf>) -> Result<Self, EngineError> {
        let machine = |error: wasmtime::Error| EngineError::Machine(error.into());
        let wasmtime = wasmtime::Engine::new(&config()).map_err(machine)?;
        let linker = host::linker(&wasmtime).map_err(machine)?;
        let cache = cache
            .map(|folder| Cache::open(folder, &wasmtime))
            .transpose()
            .map_err(EngineError::Cache)?;
        let ticker = Ticker::start(wasmtime.weak()).map_err(EngineError::Ticker)?;
        Ok(Engine {
            shared: Arc::new(Shared {
                wasmtime,
                linker,
                cache,
                ticker,
                loaded: Mutex::default(),
                compiling: Mutex::default(),
            }),
        })
    }
}

impl Host for Engine {
    fn load(&self, module: &[u8]) -> Result<Arc<dyn Module>, ModuleError> {
        let digest = CompiledPlugin::digest(module)?;
        if let Some(plugin) = self.shared.known(digest) {
            return Ok(plugin);
        }
        let _one_at_a_time = self.shared.compiling.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(plugin) = self.shared.known(digest) {
            return Ok(plugin);
        }
        let plugin = Arc::new(CompiledPlugin::load(&self.shared, digest, module)?);
        let mut loaded = self.shared.lock_loaded();
        loaded.retain(|_, plugin| plugin.strong_count() > 0);
        loaded.insert(digest, Arc::downgrade(&plugin));
        Ok(plugin)
    }
}

impl Shared {
    /// To be held while a guest runs.
    pub(crate) fn running(&self) -> Running<'_> {
        self.ticker.running()
    }

    fn known(&self, digest: Digest) -> Option<Arc<CompiledPlugin>> {
        self.lock_loaded().get(&digest).and_then(Weak::upgrade)
    }

    /// Each change of the map is one step, so a thread that panicked left it sound.
    fn lock_loaded(&self) -> MutexGuard<'_, BTreeMap<Digest, Weak<CompiledPlugin>>> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn config() -> Config {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        // Guests are called synchronously; support for anything else costs 330 ns a call.
        .concurrency_support(false)
        .max_wasm_stack(STACK_BYTES_MAX)
        .wasm_backtrace_max_frames(NonZeroUsize::new(BACKTRACE_FRAMES_MAX))
        // Only needed where native debuggers unwind through guests.
        .native_unwind_info(false);
    config
}

/// A thread that raises the engine's epoch once a millisecond while calls are in flight.
struct Ticker {
    state: Arc<TickerState>,
    thread: Thread,
}

#[derive(Default)]
struct TickerState {
    in_flight: AtomicUsize,
    asleep: AtomicBool,
    stop: AtomicBool,
}

impl Ticker {
    fn start(engine: wasmtime::EngineWeak) -> std::io::Result<Self> {
        let state = Arc::<TickerState>::default();
        let of_thread = Arc::clone(&state);
        let handle = std::thread::Builder::new()
            .name("wasm-ticker".into())
            .spawn(move || of_thread.run(&engine))?;
        Ok(Ticker {
            state,
            thread: handle.thread().clone(),
        })
    }

    fn running(&self) -> Running<'_> {
        // Sequentially consistent on both sides: either the ticker sees the call or the call sees it asleep.
        self.state.in_flight.fetch_add(1, Ordering::SeqCst);
        if self.state.asleep.load(Ordering::SeqCst) {
            self.thread.unpark();
        }
        Running { state: &self.state }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.state.stop.store(true, Ordering::SeqCst);
        self.thread.unpark();
    }
}

impl TickerState {
    fn run(&self, engine: &wasmtime::EngineWeak) {
        let mut idle = 0;
        while !self.stop.load(Ordering::SeqCst) {
            if self.in_flight.load(Ordering::SeqCst) > 0 {
                idle = 0;
            } else {
                idle += 1;
            }
            if idle > IDLE_TICKS_MAX {
                self.asleep.store(true, Ordering::SeqCst);
                while self.in_flight.load(Ordering::SeqCst) == 0 && !self.stop.load(Ordering::SeqCst) {
                    std::thread::park();
                }
                self.asleep.store(false, Ordering::SeqCst);
                idle = 0;
            }
            std::thread::sleep(TICK);
            let Some(engine) = engine.upgrade() else { return };
            engine.increment_epoch();
        }
    }
}

/// A call is in flight as long as this lives.
pub(crate) struct Running<'a> {
    state: &'a TickerState,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.state.in_flight.fetch_sub(1, Ordering::SeqCst);
    }
}
