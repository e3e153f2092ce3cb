use std::io::IoSlice;
use std::path::Path;

use model::Timestamp;
use model::record_batch::{BatchBuilder, BatchOptions};

use super::*;
use crate::disk::{Disk, OpenMode};
use crate::{SimDisk, disk::SimFile};

const FOLDER: &str = "/t-0";
const LOG: &str = "/t-0/log";
const LIST: &str = "/t-0/list";
const SEGMENT: Offset = Offset::new(1000);

/// A log of batches that begin at these offsets above the segment's base, and its list.
fn written(relative: &[u32]) -> (SimDisk, SimFile, SimFile, u64) {
    let disk = SimDisk::new(1);
    disk.create_directory(Path::new(FOLDER)).unwrap();
    let create = |name| disk.open(Path::new(name), OpenMode::Create).unwrap();
    let (log, list) = (create(LOG), create(LIST));
    let mut writer = Writer::default();
    let mut position = 0;
    for base in relative {
        let mut builder = BatchBuilder::new(BatchOptions::default());
        let key = base.to_be_bytes();
        builder
            .append(Timestamp::from_millis(1), Some(&key), None, &[])
            .unwrap();
        let mut bytes = builder.build().unwrap().to_vec();
        bytes[..8].copy_from_slice(&(SEGMENT.get() + i64::from(*base)).to_be_bytes());
        writer.note(&BatchHeader::parse(&bytes).unwrap(), *base);
        log.write_all_at(&[IoSlice::new(&bytes)], position).unwrap();
        position += bytes.len() as u64;
    }
    list.write_all_at(&[IoSlice::new(&writer.finish(position))], 0).unwrap();
    (disk, log, list, position)
}

#[test]
fn the_list_says_where_each_batch_begins() {
    let relative: Vec<u32> = (0..1000).map(|number| number * 3).collect();
    let (_, log, list, size) = written(&relative);
    let bases = BatchBases::open(list, size).unwrap().unwrap();
    let mut cursor = bases.first(Wait::Allowed);
    for base in &relative {
        assert!(cursor.next_is(*base).unwrap());
    }
    assert!(!cursor.next_is(3000).unwrap(), "there is no more");
    for from in [0, 3, 768, 2997] {
        let mut cursor = bases.at(from, Wait::Allowed).unwrap();
        assert!(cursor.next_is(from).unwrap());
        assert_eq!(cursor.next_is(from + 3).unwrap(), from < 2997);
    }
    for other in [1, 2999, 3000, u32::MAX] {
        let mut cursor = bases.at(other, Wait::Allowed).unwrap();
        assert!(!cursor.next_is(other).unwrap(), "{other}");
    }
    let loaded = bases.load(&log, size, SEGMENT).unwrap().unwrap();
    let next_from = |relative| loaded.next_from(SEGMENT.plus(relative)).map(|next| next.since(SEGMENT));
    assert_eq!(
        [next_from(0), next_from(1), next_from(2997), next_from(2998)],
        [Some(0), Some(3), Some(2997), None]
    );
}

#[test]
fn a_moved_batch_does_not_make_the_list_another_segments() {
    let (disk, log, list, size) = written(&[0, 4, 9]);
    assert!(disk.flip_bit(Path::new(LOG), 7, 0));
    let bases = BatchBases::open(list, size).unwrap().unwrap();
    assert!(bases.load(&log, size, SEGMENT).unwrap().is_some());
}

#[test]
fn a_list_that_is_damaged_or_of_another_segment_is_none() {
    let (_, _, list, size) = written(&[0, 4, 9]);
    let bytes = list.size_bytes().unwrap();
    for byte in 0..usize::try_from(bytes).unwrap() {
        let (disk, log, list, size) = written(&[0, 4, 9]);
        assert!(disk.flip_bit(Path::new(LIST), byte, 3));
        let bases = BatchBases::open(list, size).unwrap();
        let loaded = bases.and_then(|bases| bases.load(&log, size, SEGMENT).unwrap());
        assert_eq!(loaded, None, "byte {byte}");
    }
    assert!(BatchBases::open(list.clone(), size + 1).unwrap().is_none());
    let (_, other, _, _) = written(&[0, 4, 8]);
    let bases = BatchBases::open(list.clone(), size).unwrap().unwrap();
    assert_eq!(bases.load(&other, size, SEGMENT).unwrap(), None);
    for cut in [0, 19, bytes - 1] {
        list.truncate(cut).unwrap();
        assert!(BatchBases::open(list.clone(), size).unwrap().is_none(), "{cut}");
    }
}
