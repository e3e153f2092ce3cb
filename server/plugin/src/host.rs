//! What runs the modules that users bring, as seen by those who keep modules and deployments.
//!
//! Who embeds plugins holds a [`Host`] and neither knows nor cares what a module is made of. A module is loaded once and
//! then makes as many instances as there are tasks; an instance is one of the plugin traits, and replaces itself after a
//! trap, so its owner only ever calls it.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use crate::descriptor::{Descriptor, Task};
use crate::logs::Logs;
use crate::measurements::Measurements;
use crate::{Partitioner, Serde, Validator, WindowAggregator};

/// Largest module that is accepted, in bytes.
pub const MODULE_BYTES_MAX: usize = 64 << 20;

/// What a module is known by: the SHA-256 of its bytes, shown in lower-case hex.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    #[must_use]
    pub const fn new(bytes: [u8; 32]) -> Self {
        Digest(bytes)
    }

    #[must_use]
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not 64 hex digits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a module's digest is 64 hex digits")]
pub struct DigestError;

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let text = text.as_bytes();
        let mut bytes = [0; 32];
        if text.len() != 2 * bytes.len() {
            return Err(DigestError);
        }
        for (byte, digits) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            let digit = |digit: u8| char::from(digit).to_digit(16).ok_or(DigestError);
            let value = digit(digits[0])? << 4 | digit(digits[1])?;
            *byte = u8::try_from(value).expect("two hex digits make a byte");
        }
        Ok(Digest(bytes))
    }
}

/// What kind of plugin a module is: the world of the interface that it was built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum World {
    Partitioner,
    Serde,
    Validator,
    WindowAggregator,
    /// A window aggregator that also chooses keys or event times.
    KeyedAggregator,
    /// A keyed aggregator that can also take over another version's state.
    MigratingAggregator,
}

impl World {
    /// The name that the interface gives it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            World::Partitioner => "partitioner",
            World::Serde => "serde",
            World::Validator => "validator",
            World::WindowAggregator => "window-aggregator",
            World::KeyedAggregator => "keyed-aggregator",
            World::MigratingAggregator => "migrating-aggregator",
        }
    }

    /// Whether such a module can be deployed as a windowed processor.
    #[must_use]
    pub const fn aggregates(self) -> bool {
        matches!(
            self,
            World::WindowAggregator | World::KeyedAggregator | World::MigratingAggregator
        )
    }
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What is known of a module once it has been looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleInfo {
    pub digest: Digest,
    pub size_bytes: u64,
    pub world: World,
    /// The module's own words, its name and version among them.
    pub descriptor: Descriptor,
}

/// Why a module is refused, or makes no instance.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModuleError {
    #[error("the module has {size} bytes, the limit is {limit}")]
    TooLarge { size: usize, limit: usize },
    #[error("the file is no WebAssembly: it does not begin with \\0asm")]
    NotWasm,
    #[error("the file is a core module; a component is needed (wasm-tools component new)")]
    CoreModule,
    #[error("the component does not compile: {0}")]
    Compile(String),
    #[error("the component imports {0}; plugins get no WASI, build it without (for Rust: wasm32-unknown-unknown)")]
    Wasi(String),
    #[error("the component imports {0}, which plugins of this kind do not get")]
    Import(String),
    #[error("the component lacks the export {0}")]
    MissingExport(String),
    #[error("the component exports {0}, which belongs to no kind of plugin that can be run")]
    Export(String),
    #[error("the component exports both {0} and {1}; a module is one kind of plugin")]
    Ambiguous(String, String),
    #[error("the component does not fit the interface: {0}")]
    Interface(String),
    #[error("the component could not describe itself: {0}")]
    Describe(String),
    #[error("a {wanted} is needed, the module is a {got}")]
    Kind { wanted: &'static str, got: World },
    #[error("the instance did not start: {0}")]
    Start(String),
}

/// Bounds of one instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceLimits {
    /// Linear memory.
    pub memory_bytes: usize,
    /// Processor time of one call; what the machine spends on others does not count.
    pub call_time: Duration,
}

impl InstanceLimits {
    /// For plugins behind a partition.
    pub const PROCESSOR: InstanceLimits = InstanceLimits {
        memory_bytes: 64 << 20,
        call_time: Duration::from_millis(100),
    };
    /// For plugins in the way of a client's request: partitioners, serdes, validators.
    pub const REQUEST: InstanceLimits = InstanceLimits {
        memory_bytes: 64 << 20,
        call_time: Duration::from_millis(10),
    };
}

/// What one instance is told and where it reports to.
#[derive(Clone, Debug)]
pub struct InstanceSettings {
    pub task: Task,
    /// Of the deployment; read by the plugin one name at a time.
    pub config: Arc<BTreeMap<String, String>>,
    pub limits: InstanceLimits,
    /// Shared by the instances of a deployment.
    pub logs: Arc<Logs>,
    /// Shared by the instances of a deployment.
    pub measurements: Arc<Measurements>,
}

/// Runs modules.
pub trait Host: Send + Sync {
    /// Looks at a module, compiles it if that was not done before, and lets it describe itself. This takes from
    /// milliseconds to many seconds of processor time.
    ///
    /// # Errors
    /// If the module is none that can be run.
    fn load(&self, module: &[u8]) -> Result<Arc<dyn Module>, ModuleError>;
}

/// A module that can be run.
pub trait Module: Send + Sync {
    fn info(&self) -> &ModuleInfo;

    /// # Errors
    /// If the module is another kind of plugin, or the instance refuses its settings.
    fn partitioner(&self, settings: InstanceSettings) -> Result<Box<dyn Partitioner>, ModuleError>;

    /// # Errors
    /// If the module is another kind of plugin, or the instance refuses its settings.
    fn serde(&self, settings: InstanceSettings) -> Result<Box<dyn Serde>, ModuleError>;

    /// # Errors
    /// If the module is another kind of plugin, or the instance refuses its settings.
    fn validator(&self, settings: InstanceSettings) -> Result<Box<dyn Validator>, ModuleError>;

    /// # Errors
    /// If the module is another kind of plugin, or the instance refuses its settings.
    fn window_aggregator(&self, settings: InstanceSettings) -> Result<Box<dyn WindowAggregator>, ModuleError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_read_as_it_is_shown() {
        let digest = Digest::new(std::array::from_fn(|place| u8::try_from(7 * place).unwrap()));
        assert_eq!(digest.to_string().parse(), Ok(digest));
        assert_eq!(digest.to_string().len(), 64);
        for text in ["", "00", &"g0".repeat(32), &"ä".repeat(32), &"0".repeat(65)] {
            assert_eq!(text.parse::<Digest>(), Err(DigestError), "{text}");
        }
    }
}
