//! Arbitrary bytes: the files of `corpus/`, and many mutations of them, always the same.

use std::path::Path;

use crate::decode_anything;

const MUTATIONS_PER_FILE: u64 = 400;

/// Name and bytes of each file, in the order of their names.
fn corpus() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            (
                path.file_name().unwrap().to_string_lossy().into_owned(),
                std::fs::read(&path).unwrap(),
            )
        })
        .collect();
    files.sort();
    files
}

#[test]
fn the_corpus_holds_messages_of_every_kind() {
    let files = corpus();
    for (name, bytes) in &files {
        assert!(decode_anything(bytes), "{name} is not what it says it is");
    }
    let kinds: std::collections::BTreeSet<u8> = files.iter().map(|(_, bytes)| bytes[0]).collect();
    assert_eq!(kinds, (0..=14).collect());
}

#[test]
fn no_mutation_of_the_corpus_makes_a_decoder_panic() {
    let files = corpus();
    for (at, (_, bytes)) in files.iter().enumerate() {
        for round in 0..MUTATIONS_PER_FILE {
            let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ (at as u64) << 32 ^ (round + 1));
            let other = &files[random.below(files.len())].1;
            let mutated = mutate(bytes.clone(), other, &mut random);
            decode_anything(&mutated);
        }
    }
}

#[test]
fn short_inputs_do_not_make_a_decoder_panic() {
    for first in 0..=u8::MAX {
        decode_anything(&[first]);
        for second in 0..=u8::MAX {
            decode_anything(&[first, second]);
            decode_anything(&[first, second, 0xff, 0xff, 0xff, 0xff, 0xff]);
            decode_anything(&[first, 0, second, 0, 3, 0, 0, 0, 1, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff]);
        }
    }
}

/// xorshift64
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 16) as usize % limit.max(1)
    }
}

fn mutate(mut bytes: Vec<u8>, other: &[u8], random: &mut Random) -> Vec<u8> {
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len());
        match random.below(6) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
            2 => bytes.truncate(at.max(1)),
            3 => bytes.splice(at..at, [0xff; 4]).for_each(drop),
            4 => bytes.extend_from_slice(&other[random.below(other.len())..]),
            _ => {
                let until = (at + 4).min(bytes.len());
                bytes[at..until].fill([0x7f, 0xff, 0][random.below(3)]);
            }
        }
    }
    bytes
}
