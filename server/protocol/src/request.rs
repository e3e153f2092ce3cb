//! Requests and responses of any API, by key.
#![allow(clippy::all, reason = "generated")]

use crate::ApiKey;
use crate::generated_prelude::*;

include!(concat!(env!("OUT_DIR"), "/messages_enums.rs"));
