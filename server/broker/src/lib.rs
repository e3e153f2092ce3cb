//! The broker: a shell that answers clients and runs replicas and coordinators.
//!
//! What is decided is decided in the crates below; here requests are taken apart, effects carried out and waits waited
//! for. The broker knows its controller only by [`ControllerChannel`] and the cluster only by the images that it is
//! handed.

mod assignments;
mod background;
mod budget;
mod cleaner;
mod clock;
mod controller_client;
mod coordinators;
mod directory_watch;
mod dispatch;
mod errors;
mod handlers;
mod housekeeping;
mod lifecycle;
mod metadata_listener;
mod mover;
mod node;
mod partitions;
mod plugins;
mod producer_ids;
mod recovered;
mod running;
mod scrubber;
mod settings;
mod stream_tasks;

pub use cleaner::{CleanerFigures, CompactionProgress, CompactionRound, CompactionState};
pub use clock::Clock;
pub use controller_client::{ControllerChannel, ControllerClient, ControllerError, ControllerFuture};
pub use dispatch::ClientDoor;
pub use lifecycle::{Advertised, Registration, RegistrationError};
pub use node::{Broker, BrokerParts, View};
pub use partitions::{DirectoryFigures, LogDirectories, LogDirectoriesError, LogDisk};
pub use plugins::{Plugins, PluginsParts};
pub use running::{MetadataUpdate, RunningBroker, StartError, start};
pub use scrubber::DamageFigures;
