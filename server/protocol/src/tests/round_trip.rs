//! Random messages of all kinds and versions.

use std::path::Path;

use bytes::Bytes;
use proptest::prelude::*;

use super::registry::{Entry, all};
use super::sampler::{Sample, Sampler};
use crate::generator::names::snake_case;
use crate::generator::notation::parse;
use crate::generator::schema::Message;

/// Each entry with its notation.
fn notations() -> Vec<(Entry, Message)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
    let notation = |entry: &Entry| {
        let path = folder
            .join(entry.folder)
            .join(format!("{}.txt", snake_case(entry.name)));
        parse(&std::fs::read_to_string(path).unwrap())
    };
    all()
        .into_iter()
        .map(|entry| (notation(&entry), entry))
        .map(|(notation, entry)| (entry, notation))
        .collect()
}

fn check(entry: &Entry, version: i16, sample: Sample) {
    let what = format!("{}/{} {version}: {:02x?}", entry.folder, entry.name, sample.bytes);
    let bytes = Bytes::from(sample.bytes);
    let written = (entry.convert)(bytes.clone(), version, version).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(written.as_ref(), Ok(&bytes), "{what}");
    let traced = (entry.trace)(bytes, version);
    assert_eq!(traced.result, Ok(()));
    let trace: Vec<_> = traced
        .lengths
        .iter()
        .map(|length| (length.position, length.kind))
        .collect();
    assert_eq!(trace, sample.lengths, "{what}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_message_of_every_version_survives_the_round_trip(seed: u64) {
        for (entry, notation) in notations() {
            for version in entry.first_version..=entry.last_version {
                check(&entry, version, Sampler::new(&notation, version, seed).sample());
            }
        }
    }
}
