//! What every plugin has: a description, a start, and one instance that lives between calls.

use std::any::Any;
use std::cell::RefCell;
use std::marker::PhantomData;

use crate::bindings::exports::millstream::plugin::lifecycle;
use crate::bindings::millstream::plugin::types::Task;
use crate::host;

/// A plugin of any kind.
pub trait Plugin: Sized + 'static {
    /// Shown to who deploys the plugin. Nothing of the host may be used here.
    fn describe() -> Descriptor;

    /// Reads the configuration ([`host::config`]) and makes the instance.
    ///
    /// # Errors
    /// If the configuration cannot be used; the text is shown to who deployed the plugin.
    fn start() -> Result<Self, String>;
}

/// A plugin's description of itself.
#[derive(Clone, Debug, Default)]
pub struct Descriptor {
    pub name: String,
    pub version: String,
    pub doc: String,
    pub parameters: Vec<Parameter>,
}

impl Descriptor {
    #[must_use]
    pub fn new(name: &str, version: &str, doc: &str) -> Self {
        Descriptor {
            name: name.to_owned(),
            version: version.to_owned(),
            doc: doc.to_owned(),
            parameters: Vec::new(),
        }
    }

    /// A setting that must be given.
    #[must_use]
    pub fn required(self, name: &str, doc: &str) -> Self {
        self.with(name, doc, None, true)
    }

    /// A setting that may be left out; `fallback` says what is then taken.
    #[must_use]
    pub fn optional(self, name: &str, doc: &str, fallback: Option<&str>) -> Self {
        self.with(name, doc, fallback.map(str::to_owned), false)
    }

    fn with(mut self, name: &str, doc: &str, fallback: Option<String>, required: bool) -> Self {
        self.parameters.push(Parameter {
            name: name.to_owned(),
            doc: doc.to_owned(),
            fallback,
            required,
        });
        self
    }
}

/// One setting.
#[derive(Clone, Debug)]
pub struct Parameter {
    pub name: String,
    pub doc: String,
    pub fallback: Option<String>,
    pub required: bool,
}

/// Stands between a plugin and the exports of its world.
pub struct Adapter<P>(PhantomData<P>);

thread_local! {
    static INSTANCE: RefCell<Option<Box<dyn Any>>> = const { RefCell::new(None) };
}

fn start<P: Plugin>() -> Result<(), String> {
    host::report_panics();
    let plugin = P::start()?;
    INSTANCE.with_borrow_mut(|instance| *instance = Some(Box::new(plugin)));
    Ok(())
}

/// # Panics
/// If the host calls before it has started the plugin.
pub(crate) fn with<P: Plugin, R>(call: impl FnOnce(&mut P) -> R) -> R {
    INSTANCE.with_borrow_mut(|instance| {
        let plugin = instance.as_mut().and_then(|plugin| plugin.downcast_mut::<P>());
        call(plugin.expect("the host starts a plugin before it calls it"))
    })
}

impl<P: Plugin> lifecycle::Guest for Adapter<P> {
    fn describe() -> lifecycle::Descriptor {
        let descriptor = P::describe();
        let parameters = descriptor.parameters.into_iter().map(|parameter| lifecycle::Parameter {
            name: parameter.name,
            doc: parameter.doc,
            fallback: parameter.fallback,
            required: parameter.required,
            secret: false,
        });
        lifecycle::Descriptor {
            name: descriptor.name,
            version: descriptor.version,
            doc: descriptor.doc,
            parameters: parameters.collect(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            stores: Vec::new(),
        }
    }

    fn init(_task: Task) -> Result<(), String> {
        start::<P>()
    }
}
