//! The HTTP door: topics, records and groups for programs that have an HTTP client and nothing else, described by an
//! OpenAPI document that is made from the routes themselves.
//!
//! Everything goes through [`client::Client`], so that the same door stands before a node in process and before any
//! other Kafka cluster; it knows neither the broker nor the log. What runs of users' plugins it sees by
//! [`plugin::RunningPlugins`], and changes by writing the records that say what is deployed. What a request may cost is
//! bounded by [`Limits`] and by named constants.

mod bodies;
mod coders;
mod compaction;
mod cursor;
mod decoded;
mod deployments;
mod fields;
mod format;
mod gateway;
mod guard;
mod metrics;
mod openapi;
mod problem;
mod read;
mod routes;
mod server;
mod web_ui;

#[cfg(test)]
mod fake_node;
#[cfg(test)]
mod fake_plugins;

pub use compaction::{Compaction, CompactionBacklog, CompactionRound, CompactionState, PartitionCompaction};
pub use gateway::{Build, Figure, Figures, GatewayParts, Limits, Readiness};
pub use openapi::{openapi, openapi_text};
pub use server::serve;
