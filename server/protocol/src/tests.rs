//! All messages at once: against Kafka's bytes, against their own notation, and against hostile bytes.

mod corpus;
mod golden;
mod hostile;
mod registry;
mod round_trip;
mod sampler;
