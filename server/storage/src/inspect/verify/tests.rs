//! Each kind of damage, and that it is told: where, and only it.

use model::record_batch::{BASE_OFFSET_AT, HEADER_BYTES};

use super::*;
use crate::disk::{Fault as DiskFault, Operation, SimDisk};
use crate::inspect::fixture::{
    DIRECTORY, END, FIRST, INTERVAL_BYTES, LAST, Notes, PARTITION, SECOND, at, batches, change, content, directory,
    forget_the_end, offset, partition, put,
};
use crate::producer_state::ProducerStates;
use crate::write_checkpoint;

fn look(disk: &SimDisk, records: bool) -> (Looked, Notes) {
    let options = VerifyOptions {
        records,
        index_interval_bytes: INTERVAL_BYTES,
    };
    let mut notes = Notes::default();
    let target = Target::of(disk, Path::new(DIRECTORY)).unwrap();
    let looked = verify(disk, &target, options, &mut notes).unwrap();
    (looked, notes)
}

/// `fault file@position first..end` of each finding.
fn findings(disk: &SimDisk) -> Vec<String> {
    look(disk, false).1.findings.iter().map(short).collect()
}

fn short(finding: &Finding) -> String {
    let name = finding.path.file_name().unwrap().to_str().unwrap();
    let position = finding.position.map(|at| format!("@{at}")).unwrap_or_default();
    let offsets = finding
        .offsets
        .map(|(from, to)| format!(" {from}..{to}"))
        .unwrap_or_default();
    format!("{} {name}{position}{offsets}", finding.fault.name())
}

fn log(segment: &str) -> String {
    format!("{segment}.log")
}

#[test]
fn a_sound_directory_has_nothing_to_tell() {
    let disk = directory();
    let (looked, notes) = look(&disk, true);
    assert_eq!(notes.findings, []);
    let target = Target::of(&disk, Path::new(DIRECTORY)).unwrap();
    let bytes = size_bytes(&disk, &target).unwrap();
    assert_eq!(
        looked,
        Looked {
            partitions: 1,
            segments: 3,
            batches: 11,
            bytes
        }
    );
    assert_eq!(notes.bytes, bytes);
}

#[test]
fn a_changed_byte_of_a_record_is_a_wrong_checksum() {
    let disk = directory();
    let (position, _) = batches(&disk, FIRST)[1];
    change(&disk, &log(FIRST), |bytes| bytes[position + HEADER_BYTES + 3] ^= 1);
    assert_eq!(findings(&disk), [format!("checksum {}@{position} 3..6", log(FIRST))]);
}

#[test]
fn a_length_that_lies_hides_one_batch_and_no_more() {
    for length in [i32::MAX, -1, 0, 70] {
        let disk = directory();
        let (position, _) = batches(&disk, FIRST)[1];
        change(&disk, &log(FIRST), |bytes| {
            bytes[position + 8..position + 12].copy_from_slice(&length.to_be_bytes());
        });
        let next = batches_after(&disk, position);
        assert_eq!(
            findings(&disk),
            [
                format!("unreadable {}@{position}", log(FIRST)),
                format!("offset-gap {}@{next} 3..6", log(FIRST)),
            ],
            "{length}"
        );
    }
}

/// All batches of the first segment have the same size.
fn batches_after(disk: &SimDisk, position: usize) -> usize {
    position + batches(disk, SECOND)[1].0
}

#[test]
fn bytes_between_two_batches_are_told_with_the_offsets_they_held() {
    let disk = directory();
    let second = batches(&disk, SECOND);
    let (from, to) = (second[1].0, second[3].0);
    change(&disk, &log(SECOND), |bytes| bytes[from..to].fill(0));
    assert_eq!(
        findings(&disk),
        [
            format!("unreadable {}@{from}", log(SECOND)),
            format!("offset-gap {}@{to} 15..21", log(SECOND)),
        ]
    );
}

#[test]
fn what_a_crash_leaves_at_the_end_is_a_torn_tail_unless_the_end_was_in_order() {
    for tail in [40, HEADER_BYTES + 5] {
        let disk = directory();
        change(&disk, &log(LAST), |bytes| {
            let batch = bytes[..tail].to_vec();
            bytes.extend(batch);
        });
        let at = content(&disk, &at(&log(LAST))).len() - tail;
        assert_eq!(findings(&disk), [format!("unreadable {}@{at}", log(LAST))]);
        forget_the_end(&disk);
        assert_eq!(findings(&disk), [format!("torn-tail {}@{at}", log(LAST))]);
    }
}

#[test]
fn a_whole_last_batch_with_a_wrong_checksum_is_a_torn_tail_after_a_crash() {
    let disk = directory();
    let (position, _) = batches(&disk, LAST)[2];
    change(&disk, &log(LAST), |bytes| {
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
    });
    let wrong = format!("checksum {}@{position} 30..33", log(LAST));
    assert_eq!(findings(&disk), [wrong]);
    forget_the_end(&disk);
    disk.remove_file(&Path::new(DIRECTORY).join(HIGH_WATERMARK_CHECKPOINT))
        .unwrap();
    let torn = findings(&disk);
    assert_eq!(torn[0], format!("torn-tail {}@{position}", log(LAST)));
    assert_eq!(torn[1..], [format!("snapshot-above-end {:020}.snapshot", END)]);
}

#[test]
fn a_base_offset_is_outside_of_the_checksum_and_held_to_its_neighbours() {
    let set = |base: i64| {
        let disk = directory();
        let (position, _) = batches(&disk, SECOND)[2];
        change(&disk, &log(SECOND), |bytes| {
            bytes[position + BASE_OFFSET_AT..][..8].copy_from_slice(&base.to_be_bytes());
        });
        let told = findings(&disk);
        let of_log = told.iter().filter(|finding| finding.contains(".log"));
        (position, of_log.cloned().collect::<Vec<_>>())
    };
    let (position, told) = set(2);
    assert_eq!(
        told,
        [
            format!("offsets-go-back {}@{position} 2..5", log(SECOND)),
            format!("offset-gap {}@{} 5..21", log(SECOND), position * 3 / 2),
        ]
    );
    let (position, told) = set(1 << 40);
    let far = 1i64 << 40;
    assert_eq!(
        told,
        [
            format!("offset-gap {}@{position} 18..{far}", log(SECOND)),
            format!("offsets-go-back {}@{} 21..24", log(SECOND), position * 3 / 2),
        ]
    );
}

#[test]
fn a_leader_epoch_is_outside_of_the_checksum_and_held_to_the_list() {
    let set = |epoch: i32| {
        let disk = directory();
        let (position, _) = batches(&disk, SECOND)[1];
        change(&disk, &log(SECOND), |bytes| {
            bytes[position + 12..position + 16].copy_from_slice(&epoch.to_be_bytes());
        });
        (position, findings(&disk))
    };
    let (position, told) = set(4);
    assert_eq!(told, [format!("epoch-goes-back {}@{position} 15..18", log(SECOND))]);
    let (position, told) = set(7);
    assert_eq!(
        told,
        [
            format!("epoch-not-listed {}@{position} 15..18", log(SECOND)),
            format!("epoch-goes-back {}@{} 18..21", log(SECOND), position * 2),
        ]
    );
    // The batch with which the list begins.
    let disk = directory();
    let next = batches(&disk, FIRST)[1].0;
    change(&disk, &log(FIRST), |bytes| {
        bytes[12..16].copy_from_slice(&7i32.to_be_bytes())
    });
    assert_eq!(
        findings(&disk),
        [
            format!("epoch-not-listed {}@0 0..3", log(FIRST)),
            format!("epoch-goes-back {}@{next} 3..6", log(FIRST)),
        ]
    );
}

#[test]
fn a_segment_that_is_gone_is_a_gap_but_not_in_a_compacted_log() {
    let disk = directory();
    for ending in ["log", "index", "timeindex"] {
        disk.remove_file(&at(&format!("{SECOND}.{ending}"))).unwrap();
    }
    assert_eq!(findings(&disk), [format!("offset-gap {}@0 12..24", log(LAST))]);
    let cleaned = [(partition(), offset(24))].into();
    write_checkpoint(&disk, Path::new(DIRECTORY), CLEANER_CHECKPOINT, &cleaned).unwrap();
    assert_eq!(findings(&disk), Vec::<String>::new());
}

#[test]
fn an_empty_segment_needs_no_indexes() {
    let disk = directory();
    let end = format!("{END:020}");
    disk.open(&at(&format!("{end}.log")), OpenMode::Create).unwrap();
    assert_eq!(findings(&disk), Vec::<String>::new());
    change(&disk, &format!("{end}.log"), |bytes| bytes.push(0));
    let told = findings(&disk);
    assert!(told.contains(&format!("index-missing {end}.index")), "{told:?}");
}

#[test]
fn a_gap_before_an_empty_segment_is_told() {
    let disk = directory();
    change(&disk, &log(LAST), Vec::clear);
    let (cut, _) = batches(&disk, SECOND)[3];
    change(&disk, &log(SECOND), |bytes| bytes.truncate(cut));
    let told = findings(&disk);
    assert!(told.contains(&format!("offset-gap {}@0 21..24", log(LAST))), "{told:?}");
}

#[test]
fn an_end_that_is_gone_is_told_by_what_was_recorded() {
    let disk = directory();
    let (cut, _) = batches(&disk, LAST)[1];
    change(&disk, &log(LAST), |bytes| bytes.truncate(cut));
    let told = findings(&disk);
    for expected in [
        format!("index-beyond-log {LAST}.index@0"),
        "end-below-recovery-point first-0 27..33".to_owned(),
        "high-watermark-above-end first-0".to_owned(),
        format!("snapshot-above-end {END:020}.snapshot"),
    ] {
        assert!(told.contains(&expected), "{expected} in {told:?}");
    }
}

#[test]
fn an_index_is_missing_cut_out_of_order_or_wrong() {
    let first_of = |change_index: &dyn Fn(&mut Vec<u8>), ending: &str| {
        let disk = directory();
        change(&disk, &format!("{FIRST}.{ending}"), change_index);
        let told = findings(&disk);
        assert_eq!(told.len(), 1, "{told:?}");
        told[0].replace(FIRST, "")
    };
    assert!(content(&directory(), &at(&format!("{FIRST}.index"))).len() >= 16);
    let index = |change: &dyn Fn(&mut Vec<u8>)| first_of(change, "index");
    assert_eq!(index(&|bytes| bytes.truncate(9)), "index-size .index@8");
    assert_eq!(index(&|bytes| bytes.copy_within(0..8, 8)), "index-order .index@8");
    assert_eq!(index(&|bytes| bytes[7] ^= 1), "offset-index-entry .index@0");
    assert_eq!(index(&|bytes| bytes[3] ^= 1), "offset-index-entry .index@0");
    assert_eq!(index(&Vec::clear), "index-empty .index");
    let beyond = |bytes: &mut Vec<u8>| bytes.extend([0, 0, 1, 0, 0, 1, 0, 0]);
    let entries = content(&directory(), &at(&format!("{FIRST}.index"))).len();
    assert_eq!(index(&beyond), format!("index-beyond-log .index@{entries}"));
    // Room that was set aside is no entry.
    let disk = directory();
    change(&disk, &format!("{LAST}.index"), |bytes| bytes.resize(800, 0));
    assert_eq!(findings(&disk), Vec::<String>::new());

    let times = |change: &dyn Fn(&mut Vec<u8>)| first_of(change, "timeindex");
    assert_eq!(times(&|bytes| bytes.truncate(13)), "index-size .timeindex@12");
    assert_eq!(
        times(&|bytes| bytes.copy_within(0..12, 12)),
        "index-order .timeindex@12"
    );
    assert_eq!(times(&|bytes| bytes[7] ^= 1), "time-index-entry .timeindex@0");
    assert_eq!(times(&|bytes| bytes[11] = 2), "time-index-entry .timeindex@0");
    assert_eq!(times(&Vec::clear), "time-index-incomplete .timeindex@0");
    let beyond = |bytes: &mut Vec<u8>| {
        bytes.extend(i64::MAX.to_be_bytes());
        bytes.extend([0, 0, 1, 0]);
    };
    let entries = content(&directory(), &at(&format!("{FIRST}.timeindex"))).len();
    assert_eq!(times(&beyond), format!("index-beyond-log .timeindex@{entries}"));

    let disk = directory();
    for ending in ["index", "timeindex"] {
        disk.remove_file(&at(&format!("{SECOND}.{ending}"))).unwrap();
    }
    assert_eq!(
        findings(&disk),
        [
            format!("index-missing {SECOND}.index"),
            format!("index-missing {SECOND}.timeindex")
        ]
    );
}

#[test]
fn an_aborted_transaction_lies_within_its_segment() {
    let entry = |first: i64, last: i64| {
        let mut bytes = vec![0, 0];
        [9, first, last, last]
            .iter()
            .for_each(|field| bytes.extend(field.to_be_bytes()));
        bytes
    };
    let name = format!("{SECOND}.txnindex");
    let disk = directory();
    put(&disk, &at(&name), &[entry(13, 15), entry(14, 20)].concat());
    assert_eq!(findings(&disk), Vec::<String>::new());
    for wrong in [entry(13, 11), entry(16, 15), entry(13, 24), entry(-1, 15)] {
        put(&disk, &at(&name), &wrong);
        assert_eq!(findings(&disk), [format!("transaction-index-entry {name}@0")]);
    }
    put(&disk, &at(&name), &[0; 33]);
    assert_eq!(findings(&disk), [format!("index-size {name}@0")]);
}

#[test]
fn a_batch_stands_where_it_was_written() {
    let disk = directory();
    let mut writer = crate::batch_bases::Writer::default();
    for (_, header) in batches(&disk, FIRST) {
        writer.note(&header, u32::try_from(header.base_offset).unwrap());
    }
    let size = content(&disk, &at(&log(FIRST))).len() as u64;
    let list = format!("{FIRST}.bases");
    put(&disk, &at(&list), &writer.finish(size));
    assert_eq!(findings(&disk), Vec::<String>::new());
    change(&disk, &list, |bytes| bytes[20] ^= 1);
    assert_eq!(findings(&disk), [format!("bases {list}")]);
    disk.rename(&at(&list), &at("00000000000000000099.bases")).unwrap();
    assert_eq!(findings(&disk), ["orphan-index 00000000000000000099.bases"]);
}

#[test]
fn a_producer_snapshot_is_held_to_the_log() {
    let disk = directory();
    let name = format!("{SECOND}.snapshot");
    change(&disk, &name, |bytes| {
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
    });
    assert_eq!(findings(&disk), [format!("snapshot-unreadable {name}")]);
    // Sound in itself, but the producer's last batch was another.
    let disk = directory();
    let (_, header) = batches(&disk, FIRST)[2];
    let mut producers = ProducerStates::default();
    producers.note(&header, None);
    put(&disk, &at(&name), &producers.to_snapshot());
    assert_eq!(findings(&disk), [format!("snapshot-differs {name}")]);
    // A batch that comes behind the snapshot.
    let (_, header) = batches(&disk, SECOND)[0];
    let mut producers = ProducerStates::default();
    producers.note(&header, None);
    put(&disk, &at(&name), &producers.to_snapshot());
    assert_eq!(findings(&disk), [format!("snapshot-differs {name}")]);
    // Silent producers are forgotten.
    put(&disk, &at(&name), &ProducerStates::default().to_snapshot());
    assert_eq!(findings(&disk), Vec::<String>::new());
    let far = "00000000000000000099.snapshot";
    put(&disk, &at(far), &ProducerStates::default().to_snapshot());
    assert_eq!(findings(&disk), [format!("snapshot-above-end {far}")]);
}

#[test]
fn the_leader_epochs_are_there_ascend_and_end_with_the_log() {
    let disk = directory();
    let name = "leader-epoch-checkpoint";
    put(&disk, &at(name), b"0\n2\n5 0\n3 12\n");
    assert_eq!(findings(&disk), [format!("epochs-malformed {name}")]);
    disk.remove_file(&at(name)).unwrap();
    assert_eq!(findings(&disk), [format!("epochs-missing {name}")]);
    put(&disk, &at(name), b"0\n3\n3 0\n5 12\n6 99\n");
    assert_eq!(findings(&disk), [format!("epoch-above-end {name}")]);
    put(&disk, &at(name), b"0\n1\n3 0\n");
    assert_eq!(findings(&disk), [format!("epoch-not-listed {}@0 12..15", log(SECOND))]);
}

#[test]
fn checkpoints_of_the_directory_are_read_and_lie_within_the_log() {
    let disk = directory();
    let directory = Path::new(DIRECTORY);
    put(&disk, &directory.join(RECOVERY_POINT_CHECKPOINT), b"0\n1\nfirst 0\n");
    assert_eq!(
        findings(&disk),
        [format!("checkpoint-malformed {RECOVERY_POINT_CHECKPOINT}")]
    );
    for (name, fault) in [
        (RECOVERY_POINT_CHECKPOINT, "end-below-recovery-point first-0 33..34"),
        (LOG_START_CHECKPOINT, "log-start-above-end first-0"),
        (HIGH_WATERMARK_CHECKPOINT, "high-watermark-above-end first-0"),
        (CLEANER_CHECKPOINT, "cleaned-above-end first-0"),
    ] {
        let at_end = [(partition(), offset(END))].into();
        write_checkpoint(&disk, directory, name, &at_end).unwrap();
        assert_eq!(findings(&disk), Vec::<String>::new(), "{name}");
        let above = [(partition(), offset(END + 1))].into();
        write_checkpoint(&disk, directory, name, &above).unwrap();
        assert_eq!(findings(&disk), [fault]);
        write_checkpoint(&disk, directory, name, &at_end).unwrap();
    }
}

#[test]
fn whose_a_directory_and_a_partition_are_is_looked_at() {
    let disk = directory();
    put(&disk, &Path::new(DIRECTORY).join(META_PROPERTIES), b"version=1\n");
    put(&disk, &at("partition.metadata"), b"version: 0\ntopic_id: none");
    assert_eq!(
        findings(&disk),
        [
            "meta-properties meta.properties",
            "partition-metadata partition.metadata"
        ]
    );
}

#[test]
fn what_lies_about_is_told_as_such() {
    let disk = directory();
    for name in [
        "00000000000000000000.log.deleted",
        "00000000000000000012.log.cleaned",
        "00000000000000000012.index.swap",
        "leader-epoch-checkpoint.tmp",
        "00000000000000000099.timeindex",
    ] {
        put(&disk, &at(name), b"");
    }
    for kind in ["delete", "stray", "future"] {
        let folder = format!("gone-1.09090909090909090909090909090909-{kind}");
        disk.create_directory(&Path::new(DIRECTORY).join(folder)).unwrap();
    }
    assert_eq!(
        findings(&disk),
        [
            "deleted-file 00000000000000000000.log.deleted",
            "swap-file 00000000000000000012.index.swap",
            "cleaned-file 00000000000000000012.log.cleaned",
            "orphan-index 00000000000000000099.timeindex",
            "temporary-file leader-epoch-checkpoint.tmp",
            "deleted-folder gone-1.09090909090909090909090909090909-delete",
            "future-folder gone-1.09090909090909090909090909090909-future",
            "stray-folder gone-1.09090909090909090909090909090909-stray",
        ]
    );
}

#[test]
fn records_that_cannot_be_read_are_found_where_they_are_asked_for() {
    let disk = directory();
    let (position, mut header) = batches(&disk, SECOND)[1];
    change(&disk, &log(SECOND), |bytes| {
        let end = position + header.size_bytes();
        // The length of the first record.
        bytes[position + HEADER_BYTES] = 0x7e;
        header.seal(&bytes[position + HEADER_BYTES..end]);
        bytes[position..position + HEADER_BYTES].copy_from_slice(&header.to_bytes());
    });
    assert_eq!(findings(&disk), Vec::<String>::new());
    let told = look(&disk, true).1.findings;
    let told: Vec<String> = told.iter().map(short).collect();
    assert_eq!(told, [format!("records {}@{position} 15..18", log(SECOND))]);
}

#[test]
fn the_snapshots_of_the_metadata_log_are_read_too() {
    let disk = directory();
    let name = "00000000000000000012-0000000003.checkpoint";
    let mut bytes = content(&disk, &at(&log(FIRST)));
    put(&disk, &at(name), &bytes);
    assert_eq!(findings(&disk), Vec::<String>::new());
    let second = batches(&disk, FIRST)[1].0;
    bytes[second + HEADER_BYTES] ^= 1;
    put(&disk, &at(name), &bytes);
    assert_eq!(findings(&disk), [format!("checksum {name}@{second} 3..6")]);
}

#[test]
fn a_disk_that_refuses_is_a_finding_and_the_rest_is_looked_at() {
    let disk = directory();
    disk.inject(DiskFault {
        operation: Operation::Read,
        skip: 12,
        error: io::ErrorKind::PermissionDenied,
        lasting: false,
    });
    let (looked, notes) = look(&disk, false);
    let faults: Vec<&str> = notes.findings.iter().map(|finding| finding.fault.name()).collect();
    assert!(faults.contains(&"io"), "{faults:?}");
    assert_eq!(looked.segments, 3);
}

#[test]
fn a_partition_alone_is_looked_at_with_what_its_directory_records() {
    let disk = directory();
    let above = [(partition(), offset(END + 1))].into();
    write_checkpoint(&disk, Path::new(DIRECTORY), RECOVERY_POINT_CHECKPOINT, &above).unwrap();
    let target = Target::of(&disk, Path::new(PARTITION)).unwrap();
    assert_eq!(target.directory(), Some(Path::new(DIRECTORY)));
    let mut notes = Notes::default();
    verify(&disk, &target, VerifyOptions::default(), &mut notes).unwrap();
    let told: Vec<String> = notes.findings.iter().map(short).collect();
    assert_eq!(told, ["end-below-recovery-point first-0 33..34"]);
}

#[test]
fn a_path_is_known_by_what_lies_there() {
    let disk = directory();
    let of = |path: &str| Target::of(&disk, Path::new(path));
    assert_eq!(of(DIRECTORY).unwrap(), Target::Directory(DIRECTORY.into()));
    disk.create_directory(Path::new("/data/log/first-0")).unwrap();
    assert!(
        matches!(of("/data"), Err(TargetError::NoLogs(_))),
        "a name alone is nothing"
    );
    disk.open(Path::new("/data/log/first-0/partition.metadata"), OpenMode::Create)
        .unwrap();
    assert_eq!(of("/data").unwrap(), Target::Directory("/data/log".into()));
    disk.create_directory(Path::new("/empty")).unwrap();
    assert!(matches!(of("/empty"), Err(TargetError::NoLogs(_))));
    assert!(matches!(of("/nowhere"), Err(TargetError::Io { .. })));
}

#[test]
fn bytes_of_chance_are_never_too_much() {
    let sound = directory();
    let names: Vec<String> = sound
        .list(Path::new(PARTITION))
        .unwrap()
        .into_iter()
        .map(|entry| entry.name)
        .collect();
    let mut random = 1u64;
    let mut draw = |below: usize| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(random >> 33).unwrap() % below.max(1)
    };
    for _ in 0..300 {
        let disk = directory();
        for _ in 0..=draw(4) {
            let name = &names[draw(names.len())];
            change(&disk, name, |bytes| {
                let (from, count) = (draw(bytes.len()), 1 + draw(12));
                for at in from..(from + count).min(bytes.len()) {
                    bytes[at] = u8::try_from(draw(256)).unwrap();
                }
                if draw(4) == 0 {
                    bytes.truncate(draw(bytes.len()));
                }
            });
        }
        // It comes to an end, without a panic.
        look(&disk, true);
    }
}
