//! All messages of requests and responses, and the data that Kafka's clients exchange: one module each, named as the
//! message in snake case, holding the message's struct and those within it.
#![allow(clippy::all, unused_imports, unused_variables, unreachable_pub, reason = "generated")]

include!(concat!(env!("OUT_DIR"), "/messages.rs"));
