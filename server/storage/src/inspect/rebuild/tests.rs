//! Indexes made anew give the answers that the lost ones gave, and the log is as it was.

use model::record_batch::DecompressionLimit;

use super::*;
use crate::disk::{Fault as DiskFault, Operation, SimDisk};
use crate::inspect::Finding;
use crate::inspect::fixture::{
    DIRECTORY, END, FIRST, INTERVAL_BYTES, LAST, Notes, PARTITION, SECOND, at, batches, change, content, directory,
    open, put,
};
use crate::inspect::verify::{VerifyOptions, verify};
use crate::{PartitionLog, ReadRequest, Start, Wait};

#[derive(Default)]
struct Heard {
    changed: Vec<String>,
    bytes: u64,
}

impl Watcher for Heard {
    fn found(&mut self, _finding: Finding) {}

    fn read(&mut self, bytes: u64) {
        self.bytes += bytes;
    }
}

impl Audience for Heard {
    fn rebuilt(&mut self, file: Rebuilt) {
        if file.changed {
            let name = file.path.file_name().unwrap().to_str().unwrap();
            self.changed.push(name.to_owned());
        }
    }
}

const OPTIONS: RebuildOptions = RebuildOptions {
    index_interval_bytes: INTERVAL_BYTES,
};

fn run(disk: &SimDisk) -> Result<(Tally, Heard), TargetError> {
    let mut heard = Heard::default();
    let target = Target::of(disk, Path::new(DIRECTORY))?;
    let tally = rebuild(disk, &target, OPTIONS, &mut heard)?;
    Ok((tally, heard))
}

fn files(disk: &SimDisk) -> Vec<(String, Vec<u8>)> {
    let names = disk.list(Path::new(PARTITION)).unwrap();
    names
        .into_iter()
        .map(|entry| (entry.name.clone(), content(disk, &at(&entry.name))))
        .collect()
}

fn faults(disk: &SimDisk) -> Vec<&'static str> {
    let mut notes = Notes::default();
    let target = Target::of(disk, Path::new(DIRECTORY)).unwrap();
    let options = VerifyOptions {
        index_interval_bytes: INTERVAL_BYTES,
        ..VerifyOptions::default()
    };
    verify(disk, &target, options, &mut notes).unwrap();
    notes.findings.iter().map(|finding| finding.fault.name()).collect()
}

/// What a node answers by time and by offset.
fn answers(disk: &SimDisk) -> String {
    let start = Start {
        clean: true,
        recovery_point: Offset::new(END),
        log_start_offset: Offset::ZERO,
    };
    let log = open(disk, Path::new(PARTITION), start);
    let mut text = format!("{:?}\n", log.producers());
    let reader = log.reader();
    for offset in 0..END {
        let request = ReadRequest {
            from: Offset::new(offset),
            max_bytes: 1,
            up_to: Offset::MAX,
            min_one: true,
            wait: Wait::Allowed,
        };
        let read = reader.read(request).unwrap();
        let time = Timestamp::from_millis(1_700_000_000_000 + 4 * offset);
        let found = reader.offset_for_timestamp(time, DecompressionLimit::DEFAULT, Wait::Allowed);
        text.push_str(&format!("{} {:?}\n", read.first_offset, found.unwrap()));
    }
    text
}

#[test]
fn a_log_without_records_gets_no_files() {
    let disk = directory();
    let folder = &Path::new(DIRECTORY).join("empty-0");
    let start = Start::default();
    let log = PartitionLog::open(disk.clone(), folder, LogOptions::default(), start, Timestamp::default()).unwrap();
    drop(log);
    let names = disk.list(folder).unwrap();
    let (tally, _) = run(&disk).unwrap();
    assert_eq!((tally.partitions, tally.files_changed), (2, 0));
    assert_eq!(disk.list(folder).unwrap(), names);
}

#[test]
fn whole_files_stay_as_they_are() {
    let disk = directory();
    let before = files(&disk);
    let (tally, heard) = run(&disk).unwrap();
    assert_eq!((tally.partitions, tally.segments, tally.files_changed), (1, 3, 0));
    assert_eq!(heard.changed, Vec::<String>::new());
    assert_eq!(files(&disk), before);
}

#[test]
fn lost_and_garbled_files_come_back_byte_for_byte() {
    let disk = directory();
    let before = files(&disk);
    let answered = answers(&directory());
    for (name, _) in before.iter().filter(|(name, _)| !name.ends_with(".log")) {
        if name.ends_with("index") {
            change(&disk, name, |bytes| bytes.iter_mut().for_each(|byte| *byte ^= 0x5a));
        } else if name.ends_with(".snapshot") {
            disk.remove_file(&at(name)).unwrap();
        }
    }
    disk.remove_file(&at(&format!("{SECOND}.index"))).unwrap();
    assert!(!faults(&disk).is_empty());
    let (tally, _) = run(&disk).unwrap();
    assert_eq!(files(&disk), before);
    assert_eq!(tally.files_changed, 6 + 3);
    assert_eq!(faults(&disk), Vec::<&str>::new());
    assert_eq!(answers(&disk), answered);
}

#[test]
fn a_snapshot_that_can_be_read_is_believed_and_one_that_cannot_is_made_anew() {
    let disk = directory();
    let good = content(&disk, &at(&format!("{SECOND}.snapshot")));
    put(&disk, &at(&format!("{SECOND}.snapshot")), b"nothing");
    // Of a producer whose batches are gone.
    let other = {
        let (_, mut header) = batches(&disk, FIRST)[0];
        header.producer_id = 77;
        let mut producers = ProducerStates::default();
        producers.note(&header, None);
        producers.to_snapshot()
    };
    put(&disk, &at(&format!("{LAST}.snapshot")), &other);
    disk.remove_file(&at(&format!("{END:020}.snapshot"))).unwrap();
    let (_, heard) = run(&disk).unwrap();
    assert_eq!(
        heard.changed,
        [format!("{SECOND}.snapshot"), format!("{END:020}.snapshot")]
    );
    assert_eq!(content(&disk, &at(&format!("{SECOND}.snapshot"))), good);
    let end = content(&disk, &at(&format!("{END:020}.snapshot")));
    let ids: Vec<i64> = ProducerStates::from_snapshot(&end)
        .unwrap()
        .last_of_each()
        .map(|(id, _)| id)
        .collect();
    assert_eq!(ids, [9, 77]);
}

#[test]
fn behind_damage_nothing_is_said_of_producers() {
    let disk = directory();
    let (position, _) = batches(&disk, FIRST)[1];
    change(&disk, &format!("{FIRST}.log"), |bytes| bytes[position + 70] ^= 1);
    let damaged = content(&disk, &at(&format!("{FIRST}.log")));
    put(&disk, &at(&format!("{SECOND}.snapshot")), b"nothing");
    disk.remove_file(&at(&format!("{LAST}.snapshot"))).unwrap();
    let (tally, heard) = run(&disk).unwrap();
    assert_eq!(
        tally.bytes_unreadable,
        batches(&disk, FIRST)[2].0 as u64 - position as u64
    );
    // The one that was of no use is gone, none was made.
    assert!(
        heard.changed.contains(&format!("{SECOND}.snapshot")),
        "{:?}",
        heard.changed
    );
    let names: Vec<String> = files(&disk).into_iter().map(|(name, _)| name).collect();
    assert!(!names.contains(&format!("{SECOND}.snapshot")) && !names.contains(&format!("{LAST}.snapshot")));
    assert_eq!(content(&disk, &at(&format!("{FIRST}.log"))), damaged);
}

#[test]
fn a_crash_at_any_call_leaves_old_or_new_and_the_next_run_ends_it() {
    let expected = files(&directory());
    for call in 0.. {
        let disk = directory();
        for name in [format!("{FIRST}.index"), format!("{SECOND}.timeindex")] {
            change(&disk, &name, |bytes| bytes.fill(7));
        }
        for directory in ["/", DIRECTORY, PARTITION] {
            disk.sync_directory(Path::new(directory)).unwrap();
        }
        let old = files(&disk);
        disk.crash_at_call(disk.calls() + call);
        let ended = run(&disk).is_ok();
        let crashed = disk.has_crashed();
        disk.restart();
        for (name, bytes) in files(&disk) {
            let is_old = old.iter().any(|(other, content)| *other == name && *content == bytes);
            let is_new = expected
                .iter()
                .any(|(other, content)| *other == name && *content == bytes);
            assert!(
                is_old || is_new || name.ends_with(".tmp"),
                "{name} after a crash at call {call}"
            );
        }
        run(&disk).unwrap();
        assert_eq!(files(&disk), expected, "after a crash at call {call}");
        if ended && !crashed {
            assert!(call > 10);
            return;
        }
    }
}

#[test]
fn a_full_disk_is_an_error_and_leaves_what_was() {
    let disk = directory();
    change(&disk, &format!("{FIRST}.index"), |bytes| bytes.fill(7));
    disk.inject(DiskFault {
        operation: Operation::Write,
        skip: 0,
        error: io::ErrorKind::StorageFull,
        lasting: true,
    });
    assert!(matches!(run(&disk), Err(TargetError::Io { .. })));
    disk.clear_faults();
    assert!(
        content(&disk, &at(&format!("{FIRST}.index")))
            .iter()
            .all(|byte| *byte == 7)
    );
}

#[test]
fn where_a_node_runs_nothing_is_touched() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path().join("first-0");
    crate::RealDisk.create_directory(&folder).unwrap();
    replace_file(&crate::RealDisk, &folder.join("leader-epoch-checkpoint"), b"0\n0\n").unwrap();
    let node = crate::RealDisk
        .open(&temporary.path().join(".lock"), OpenMode::Create)
        .unwrap();
    node.lock().unwrap();
    for path in [temporary.path(), folder.as_path()] {
        let target = Target::of(&crate::RealDisk, path).unwrap();
        let refused = rebuild(&crate::RealDisk, &target, OPTIONS, &mut Heard::default());
        assert!(matches!(refused, Err(TargetError::InUse(_))), "{refused:?}");
    }
    drop(node);
    let target = Target::of(&crate::RealDisk, temporary.path()).unwrap();
    assert!(rebuild(&crate::RealDisk, &target, OPTIONS, &mut Heard::default()).is_ok());
}
