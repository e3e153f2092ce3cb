//! Keys of client metrics subscriptions (KIP-714).

use super::super::check::Check;
use super::super::definition::{KeyDefinition, int, list};

pub(super) const KEYS: &[KeyDefinition] = &[
    int("interval.ms")
        .default("300000")
        .doc("The time between two pushes of a client's metrics."),
    list("match")
        .default("")
        .check(Check::Entries)
        .doc("Which clients are meant, as parameter=pattern."),
    list("metrics")
        .default("")
        .check(Check::Entries)
        .doc("Prefixes of the metrics that are asked for; * for all."),
];
