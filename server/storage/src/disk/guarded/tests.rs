//! A directory's disk that fails and fills, simulated.

use std::io::ErrorKind;
use std::sync::atomic::AtomicUsize;

use super::super::{Fault, Operation, SimDisk, read_exact_at};
use super::*;

const ROOT: &str = "/log";

fn disk() -> (SimDisk, GuardedDisk<SimDisk>) {
    let sim = SimDisk::new(7);
    sim.create_directory(Path::new(ROOT)).unwrap();
    (sim.clone(), GuardedDisk::new(sim, Path::new(ROOT)))
}

fn fault(operation: Operation, error: ErrorKind) -> Fault {
    Fault {
        operation,
        skip: 0,
        error,
        lasting: false,
    }
}

fn put(disk: &GuardedDisk<SimDisk>, name: &str, bytes: &[u8]) -> io::Result<GuardedFile<SimDisk>> {
    let file = disk.open(&Path::new(ROOT).join(name), OpenMode::Create)?;
    file.write_all_at(&[IoSlice::new(bytes)], 0)?;
    Ok(file)
}

#[test]
fn nothing_is_written_or_synced_after_a_failed_sync_and_what_is_there_is_read() {
    let (sim, disk) = disk();
    let told = Arc::new(AtomicUsize::new(0));
    let count = told.clone();
    disk.on_failure(move || {
        count.fetch_add(1, Ordering::SeqCst);
    });
    let file = put(&disk, "a", b"hello").unwrap();
    // Whatever a sync says, it is the end: even that there is no room.
    sim.inject(fault(Operation::Sync, ErrorKind::StorageFull));
    file.sync().unwrap_err();
    assert_eq!(disk.failure_kind(), Some(FailureKind::Dead));
    assert_eq!(told.load(Ordering::SeqCst), 1);
    let calls = sim.calls();
    file.sync().unwrap_err();
    file.write_all_at(&[IoSlice::new(b"x")], 0).unwrap_err();
    file.truncate(0).unwrap_err();
    put(&disk, "b", b"").err().unwrap();
    let path = Path::new(ROOT).join("a");
    disk.rename(&path, Path::new("/log/c")).unwrap_err();
    disk.remove_file(&path).unwrap_err();
    disk.sync_directory(Path::new(ROOT)).unwrap_err();
    assert_eq!(sim.calls(), calls, "the disk is not asked again");
    let mut buffer = [0; 5];
    read_exact_at(&file, &mut buffer, 0).unwrap();
    assert_eq!(&buffer, b"hello");
    assert_eq!(told.load(Ordering::SeqCst), 1);
}

#[test]
fn a_disk_that_became_read_only_is_told_from_a_dead_one_and_may_still_die() {
    let (sim, disk) = disk();
    let file = put(&disk, "a", b"hello").unwrap();
    sim.inject(fault(Operation::Write, ErrorKind::ReadOnlyFilesystem));
    file.write_all_at(&[IoSlice::new(b"x")], 0).unwrap_err();
    assert_eq!(disk.failure_kind(), Some(FailureKind::ReadOnly));
    let refused = file.write_all_at(&[IoSlice::new(b"x")], 0).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ReadOnlyFilesystem);
    disk.fail(FailureKind::Dead, "seen elsewhere");
    let failure = disk.failure().unwrap();
    assert_eq!(
        (failure.kind, failure.cause.as_str()),
        (FailureKind::Dead, "seen elsewhere")
    );
}

#[test]
fn what_cannot_be_read_and_what_is_wrong_with_a_call_leave_the_directory_in_use() {
    let (sim, disk) = disk();
    let file = put(&disk, "a", b"hello").unwrap();
    sim.inject(fault(Operation::Read, ErrorKind::TimedOut));
    file.read_at(&mut [0; 5], 0).unwrap_err();
    for error in [ErrorKind::PermissionDenied, ErrorKind::NotFound, ErrorKind::Other] {
        sim.inject(fault(Operation::Rename, error));
        disk.rename(Path::new("/log/a"), Path::new("/log/b")).unwrap_err();
    }
    assert!(disk.failure().is_none());
    let figures = disk.figures();
    assert_eq!((figures.read_errors, figures.write_errors), (1, 0));
    file.sync().unwrap();
}

#[test]
fn every_error_of_a_device_is_one() {
    for errno in [Errno::IO, Errno::UCLEAN, Errno::NODEV, Errno::TIMEDOUT, Errno::STALE] {
        assert_eq!(failure_kind(&errno.into()), Some(FailureKind::Dead), "{errno}");
    }
    assert_eq!(failure_kind(&Errno::ROFS.into()), Some(FailureKind::ReadOnly));
    for errno in [
        Errno::NOSPC,
        Errno::DQUOT,
        Errno::MFILE,
        Errno::NFILE,
        Errno::NOENT,
        Errno::ACCESS,
    ] {
        assert_eq!(failure_kind(&errno.into()), None, "{errno}");
    }
}

#[test]
fn the_reserve_is_let_go_on_a_full_disk_and_taken_again_when_there_is_twice_its_room() {
    let (sim, disk) = disk();
    sim.set_capacity(Some(64_000));
    disk.set_reserve(1_000).unwrap();
    assert_eq!(disk.figures().reserve_bytes, 1_000);
    assert!(disk.takes_growth());
    let stuffing = put(&disk, "stuffing", &vec![1; 62_950]).unwrap();
    let more = put(&disk, "more", &[2; 500]).unwrap();
    let figures = disk.figures();
    assert!(figures.is_full && figures.reserve_bytes == 0);
    assert!(!disk.takes_growth(), "what is left is for others");
    more.write_all_at(&[IoSlice::new(&[3; 500])], 500).unwrap();
    let full = more.write_all_at(&[IoSlice::new(&[3; 500])], 1_000).unwrap_err();
    assert!(is_full(&full));
    assert!(disk.failure().is_none());
    // Just short of what is wanted: the reserve, and as much again.
    stuffing.truncate(62_950 - 1_949).unwrap();
    assert!(!disk.takes_growth());
    stuffing.truncate(62_950 - 1_950).unwrap();
    assert!(disk.takes_growth());
    let figures = disk.figures();
    assert!(!figures.is_full && figures.reserve_bytes == 1_000);
}

#[test]
fn a_directory_that_is_opened_on_a_full_disk_takes_no_growth_unless_its_reserve_is_whole() {
    let (sim, disk) = disk();
    sim.set_capacity(Some(64_000));
    disk.set_reserve(1_000).unwrap();
    put(&disk, "stuffing", &vec![1; 63_000]).unwrap();
    let again = GuardedDisk::new(sim.clone(), Path::new(ROOT));
    again.set_reserve(1_000).unwrap();
    assert!(again.takes_growth(), "the reserve is there");
    put(&again, "more", &[1; 10]).unwrap();
    let again = GuardedDisk::new(sim.clone(), Path::new(ROOT));
    again.set_reserve(1_000).unwrap();
    assert!(!again.takes_growth());
    again.remove_file(Path::new("/log/stuffing")).unwrap();
    assert!(again.takes_growth());
}

#[test]
fn the_reserve_is_a_small_part_of_its_file_system_and_may_be_done_without() {
    let (sim, disk) = disk();
    sim.set_capacity(Some(64_000));
    disk.set_reserve(1 << 20).unwrap();
    assert_eq!(disk.figures().reserve_bytes, 4_000);
    disk.set_reserve(2_000).unwrap();
    assert_eq!(disk.figures().reserve_bytes, 2_000);
    let without = GuardedDisk::new(sim.clone(), Path::new(ROOT));
    without.set_reserve(0).unwrap();
    let names: Vec<String> = without
        .list(Path::new(ROOT))
        .unwrap()
        .into_iter()
        .map(|it| it.name)
        .collect();
    assert!(names.is_empty(), "{names:?}");
    put(&without, "stuffing", &vec![1; 64_000]).unwrap();
    let full = put(&without, "more", b"x").err().unwrap();
    assert!(
        is_full(&full) && without.takes_growth(),
        "every append asks the disk itself"
    );
}
