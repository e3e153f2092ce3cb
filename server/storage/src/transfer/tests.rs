//! A directory with everything that may stand in one, taken stock of and copied on a disk that loses power at every call.

use std::io::IoSlice;
use std::path::Path;

use model::{LeaderEpoch, Offset, ProducerId, Uuid};

use super::*;
use crate::checkpoint::RECOVERY_POINT_CHECKPOINT;
use crate::disk::{SimDisk, read_small_file};
use crate::inspect::fixture;
use crate::log_directory::CLEAN_SHUTDOWN_FILE;

const SOURCE: &str = "/d";
const TARGET: &str = "/target";
const APART: &[&str] = &["__cluster_metadata-0", "bootstrap.checkpoint"];

fn put(disk: &SimDisk, path: &str, bytes: &[u8]) {
    let path = Path::new(path);
    disk.create_directory(path.parent().unwrap()).unwrap();
    let file = disk.open(path, OpenMode::Replace).unwrap();
    file.write_all_at(&[IoSlice::new(bytes)], 0).unwrap();
    file.sync().unwrap();
}

/// A partition of three segments, and what else may lie about.
fn source() -> SimDisk {
    let disk = fixture::directory();
    put(&disk, "/d/first-0/00000000000000000000.txnindex", &[0; 68]);
    put(&disk, "/d/first-0/00000000000000000000.log.deleted", b"x");
    put(&disk, "/d/first-0/notes.txt", b"x");
    put(&disk, "/d/__cluster_metadata-0/00000000000000000000.log", b"x");
    put(&disk, "/d/old-0.0123456789abcdef0123456789abcdef-delete/x", b"x");
    put(
        &disk,
        "/d/odd-0.0123456789abcdef0123456789abcdef-stray/00000000000000000000.log",
        b"x",
    );
    put(&disk, "/d/next-0.0123456789abcdef0123456789abcdef-future/x", b"x");
    put(&disk, "/d/readme", b"x");
    put(&disk, "/d/bootstrap.checkpoint", b"x");
    put(&disk, "/d/cleaner-offset-checkpoint.tmp", b"x");
    disk.sync_directory(Path::new("")).unwrap();
    sync_all(&disk, Path::new("/"));
    disk
}

fn sync_all(disk: &SimDisk, directory: &Path) {
    disk.sync_directory(directory).unwrap();
    for entry in disk.list(directory).unwrap_or_default() {
        let path = directory.join(entry.name);
        if entry.is_directory {
            sync_all(disk, &path);
        } else {
            disk.open(&path, OpenMode::Read).unwrap().sync().unwrap();
        }
    }
}

/// Every file below `directory` with its bytes.
fn content(disk: &SimDisk, directory: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in disk.list(directory).unwrap() {
        let path = directory.join(&entry.name);
        if entry.is_directory {
            found.extend(content(disk, &path));
        } else {
            found.push((
                path.to_string_lossy().into_owned(),
                read_small_file(disk, &path, 1 << 30).unwrap(),
            ));
        }
    }
    found
}

fn copy(disk: &SimDisk, options: CopyOptions) -> Result<Tally, TransferError> {
    let inventory = stock(disk, Path::new(SOURCE), APART)?;
    let staging = Staging::begin(disk.clone(), Path::new(TARGET), "log", &["server.properties"])?;
    let tally = staging.copy(Path::new(SOURCE), &inventory, options, &mut |_| {})?;
    staging.finish()?;
    Ok(tally)
}

#[test]
fn stock_tells_partitions_from_what_stays_behind() {
    let disk = source();
    let inventory = stock(&disk, Path::new(SOURCE), APART).unwrap();
    assert!(inventory.clean);
    let names: Vec<&str> = inventory.partitions.iter().map(|it| it.folder.name.as_str()).collect();
    assert_eq!(names, ["first-0", "odd-0.0123456789abcdef0123456789abcdef-stray"]);
    let first = &inventory.partitions[0];
    assert_eq!(first.topic_id, Some(Uuid::from_bytes([7; 16])));
    assert_eq!(first.latest_epoch, Some(LeaderEpoch::new(5)));
    assert_eq!(first.aborted_transactions, 2);
    let complete: Vec<&str> = first
        .files
        .iter()
        .filter(|file| file.is_complete_log)
        .map(|file| file.name.as_str())
        .collect();
    assert_eq!(complete, ["00000000000000000000.log", "00000000000000000012.log"]);
    let text: Vec<String> = inventory.left_out.iter().map(|it| format!("{it:?}")).collect();
    assert_eq!(
        text,
        [
            r#"Leftover("/d/cleaner-offset-checkpoint.tmp")"#,
            r#"Leftover("/d/first-0/00000000000000000000.log.deleted")"#,
            r#"Unknown("/d/first-0/notes.txt")"#,
            r#"Future("/d/next-0.0123456789abcdef0123456789abcdef-future")"#,
            r#"Leftover("/d/old-0.0123456789abcdef0123456789abcdef-delete")"#,
            r#"Unknown("/d/readme")"#,
        ]
    );
}

#[test]
fn a_transaction_that_nobody_ended_is_seen() {
    let disk = source();
    // Version 1, checksum, one producer: id 9, epoch 0, its last batch, the offset at which its transaction began.
    let mut body = 1i32.to_be_bytes().to_vec();
    body.extend(9i64.to_be_bytes());
    body.extend([0, 0, 0, 0, 0, 1]);
    body.extend(31i64.to_be_bytes());
    body.extend([0; 16]);
    body.extend(30i64.to_be_bytes());
    let mut bytes = vec![0, 1];
    bytes.extend(crc32c::crc32c(&body).to_be_bytes());
    bytes.extend(&body);
    put(&disk, "/d/first-0/00000000000000000033.snapshot", &bytes);
    let inventory = stock(&disk, Path::new(SOURCE), APART).unwrap();
    let open = OpenTransaction {
        producer: ProducerId::new(9),
        first_offset: Offset::new(30),
    };
    assert_eq!(inventory.partitions[0].open_transactions, [open]);
}

#[test]
fn a_directory_without_the_mark_is_not_clean_and_a_malformed_checkpoint_is_refused() {
    let disk = source();
    disk.remove_file(&Path::new(SOURCE).join(CLEAN_SHUTDOWN_FILE)).unwrap();
    assert!(!stock(&disk, Path::new(SOURCE), APART).unwrap().clean);
    put(&disk, &format!("{SOURCE}/{RECOVERY_POINT_CHECKPOINT}"), b"9\n");
    let refused = stock(&disk, Path::new(SOURCE), APART);
    assert!(matches!(refused, Err(TransferError::Checkpoint(_))), "{refused:?}");
}

#[test]
fn a_copy_has_the_same_bytes_and_leaves_the_source_alone() {
    for link_complete_logs in [false, true] {
        let disk = source();
        let before = content(&disk, Path::new(SOURCE));
        let options = CopyOptions {
            link_complete_logs,
            for_kafka: false,
        };
        let tally = copy(&disk, options).unwrap();
        assert_eq!(tally.linked_bytes > 0, link_complete_logs);
        assert_eq!(content(&disk, Path::new(SOURCE)), before);
        for (name, bytes) in content(&disk, Path::new("/target/log")) {
            let source = name.replace("/target/log", SOURCE);
            let same = before.iter().find(|(path, _)| *path == source);
            assert!(
                name.ends_with(".lock") || same.is_some_and(|(_, it)| *it == bytes),
                "{name}"
            );
        }
        // The last segment is not shared: its node will append to it.
        put(&disk, "/target/log/first-0/00000000000000000024.log", b"new");
        assert_eq!(content(&disk, Path::new(SOURCE)), before);
    }
}

#[test]
fn a_target_with_anything_in_it_is_refused() {
    for found in ["/target/log/x", "/target/server.properties", "/target/x"] {
        let disk = source();
        put(&disk, found, b"x");
        let refused = copy(&disk, CopyOptions::default());
        assert!(matches!(refused, Err(TransferError::NotEmpty { .. })), "{refused:?}");
    }
    let disk = source();
    put(&disk, "/target/lost+found/x", b"x");
    put(
        &disk,
        "/target/log.unfinished/first-0/00000000000000000099.log",
        b"of an earlier attempt",
    );
    put(&disk, "/target/server.properties", b"of an earlier attempt");
    copy(&disk, CopyOptions::default()).unwrap();
    let names = content(&disk, Path::new("/target/log"));
    assert!(names.iter().all(|(name, _)| !name.contains("99.log")), "begun anew");
}

#[test]
fn after_a_crash_at_any_call_there_is_a_whole_directory_or_none() {
    let options = CopyOptions {
        link_complete_logs: true,
        for_kafka: false,
    };
    let (whole, first, last) = {
        let disk = source();
        let first = disk.calls();
        copy(&disk, options).unwrap();
        let last = disk.calls();
        (content(&disk, Path::new("/target/log")), first, last)
    };
    let mut finished = 0;
    for call in first + 1..=last {
        let disk = source();
        disk.crash_at_call(call);
        let result = copy(&disk, options);
        disk.restart();
        if disk.list(Path::new("/target/log")).is_ok() {
            finished += 1;
        } else {
            assert!(result.is_err(), "call {call}");
            copy(&disk, options).unwrap_or_else(|error| panic!("call {call}: {error}"));
        }
        assert_eq!(content(&disk, Path::new("/target/log")), whole, "call {call}");
    }
    assert!(finished < 5, "the name comes last: {finished}");
}

#[test]
fn files_that_only_we_know_are_not_for_kafka() {
    let own = [
        "00000000000000000000.bases",
        "leader-epoch-checkpoint.crc",
        "quarantine",
    ];
    for for_kafka in [false, true] {
        let disk = source();
        for name in own {
            put(&disk, &format!("{SOURCE}/first-0/{name}"), b"x");
        }
        assert!(stock(&disk, Path::new(SOURCE), APART).unwrap().partitions[0].is_quarantined);
        let options = CopyOptions {
            link_complete_logs: false,
            for_kafka,
        };
        copy(&disk, options).unwrap();
        for name in own {
            let there = disk
                .open(&Path::new("/target/log/first-0").join(name), OpenMode::Read)
                .is_ok();
            assert_eq!(there, !for_kafka, "{name}");
        }
    }
}
