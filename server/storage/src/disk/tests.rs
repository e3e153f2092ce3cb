//! One suite for every disk, and what only the simulated one can show.

use std::io::{ErrorKind, IoSlice};
use std::path::Path;

use super::*;

fn on_both_disks(suite: impl Fn(&dyn Fn(&str) -> std::path::PathBuf, DiskUnderTest)) {
    let temporary = tempfile::tempdir().unwrap();
    let root = temporary.path().to_owned();
    suite(&|name| root.join(name), DiskUnderTest::Real(RealDisk));
    let sim = SimDisk::new(1);
    sim.create_directory(Path::new("/sim")).unwrap();
    suite(&|name| Path::new("/sim").join(name), DiskUnderTest::Sim(sim));
}

enum DiskUnderTest {
    Real(RealDisk),
    Sim(SimDisk),
}

fn file_suite<D: Disk>(disk: &D, path: &dyn Fn(&str) -> std::path::PathBuf) {
    assert_eq!(
        disk.open(&path("a"), OpenMode::Read).err().unwrap().kind(),
        ErrorKind::NotFound
    );
    let file = disk.open(&path("a"), OpenMode::Create).unwrap();
    file.write_all_at(&[IoSlice::new(b"hello "), IoSlice::new(b""), IoSlice::new(b"world")], 2)
        .unwrap();
    assert_eq!(file.size_bytes().unwrap(), 13);
    let mut buffer = [9; 20];
    assert_eq!(file.read_at(&mut buffer, 0).unwrap(), 13);
    assert_eq!(&buffer[..13], b"\0\0hello world");
    assert_eq!(file.read_at(&mut buffer, 13).unwrap(), 0);
    file.allocate(40).unwrap();
    assert_eq!(file.size_bytes().unwrap(), 40);
    file.allocate(20).unwrap();
    assert_eq!(file.size_bytes().unwrap(), 40, "nothing is taken back");
    assert_eq!(file.read_at(&mut buffer, 7).unwrap(), 20);
    assert_eq!(&buffer[..7], b" world\0");
    let room = disk.room(path("a").parent().unwrap()).unwrap();
    assert!(room.available_bytes > 0 && room.available_bytes <= room.capacity_bytes);
    file.truncate(7).unwrap();
    file.sync().unwrap();
    disk.rename(&path("a"), &path("b")).unwrap();
    disk.sync_directory(path("b").parent().unwrap()).unwrap();
    let names: Vec<String> = disk
        .list(path("b").parent().unwrap())
        .unwrap()
        .into_iter()
        .map(|entry| entry.name)
        .collect();
    assert_eq!(names, ["b"]);
    disk.remove_file(&path("b")).unwrap();
    assert_eq!(
        file.read_at(&mut buffer, 2).unwrap(),
        5,
        "an open file outlives its name"
    );
    disk.create_directory(&path("d/e")).unwrap();
    disk.open(&path("d/e/f"), OpenMode::Create).unwrap();
    disk.rename(&path("d"), &path("g")).unwrap();
    assert_eq!(
        disk.list(&path("g")).unwrap(),
        [DirectoryEntry {
            name: "e".to_owned(),
            is_directory: true
        }]
    );
    disk.open(&path("g/e/f"), OpenMode::ReadWrite).unwrap();
    disk.remove_directory(&path("g")).unwrap();
    assert!(disk.list(path("x").parent().unwrap()).unwrap().is_empty());
    replace_file(disk, &path("small"), b"one").unwrap();
    replace_file(disk, &path("small"), b"two").unwrap();
    assert_eq!(read_small_file(disk, &path("small"), 3).unwrap(), b"two");
    assert_eq!(
        read_small_file(disk, &path("small"), 2).err().unwrap().kind(),
        ErrorKind::FileTooLarge
    );
    disk.copy_file(&path("small"), &path("copy")).unwrap();
    disk.link_file(&path("small"), &path("link")).unwrap();
    let small = disk.open(&path("small"), OpenMode::ReadWrite).unwrap();
    small.write_all_at(&[IoSlice::new(b"T")], 0).unwrap();
    assert_eq!(read_small_file(disk, &path("copy"), 3).unwrap(), b"two");
    assert_eq!(read_small_file(disk, &path("link"), 3).unwrap(), b"Two");
    assert_eq!(
        disk.link_file(&path("small"), &path("copy")).err().unwrap().kind(),
        ErrorKind::AlreadyExists
    );
}

#[test]
fn every_disk_does_what_a_disk_does() {
    on_both_disks(|path, disk| match disk {
        DiskUnderTest::Real(disk) => file_suite(&disk, path),
        DiskUnderTest::Sim(disk) => file_suite(&disk, path),
    });
}

#[test]
fn a_crash_keeps_what_was_synced_and_at_most_a_torn_prefix_of_the_rest() {
    let mut sizes = std::collections::BTreeSet::new();
    for seed in 0..200 {
        let disk = SimDisk::new(seed);
        disk.create_directory(Path::new("/d")).unwrap();
        disk.sync_directory(Path::new("/")).unwrap();
        let path = Path::new("/d/f");
        let file = disk.open(path, OpenMode::Create).unwrap();
        file.write_all_at(&[IoSlice::new(&[1; 1000])], 0).unwrap();
        file.sync().unwrap();
        disk.sync_directory(Path::new("/d")).unwrap();
        file.write_all_at(&[IoSlice::new(&[2; 2000])], 1000).unwrap();
        disk.restart();
        assert!(file.sync().is_err(), "a handle of before the crash is dead");
        let content = read_small_file(&disk, path, 5000).unwrap();
        assert!(content.len() >= 1000 && content[..1000].iter().all(|byte| *byte == 1));
        assert!(content[1000..].iter().all(|byte| *byte == 2));
        sizes.insert(content.len());
    }
    assert!(
        sizes.contains(&1000) && sizes.contains(&3000) && sizes.len() > 4,
        "{sizes:?}"
    );
}

#[test]
fn a_name_that_was_not_synced_may_be_gone() {
    let found: Vec<bool> = (0..50)
        .map(|seed| {
            let disk = SimDisk::new(seed);
            disk.create_directory(Path::new("/d")).unwrap();
            disk.sync_directory(Path::new("/")).unwrap();
            disk.open(Path::new("/d/f"), OpenMode::Create).unwrap().sync().unwrap();
            disk.restart();
            disk.open(Path::new("/d/f"), OpenMode::Read).is_ok()
        })
        .collect();
    assert!(found.contains(&true) && found.contains(&false));
}

#[test]
fn injected_faults_hit_the_call_they_name() {
    let disk = SimDisk::new(1);
    disk.create_directory(Path::new("/d")).unwrap();
    let file = disk.open(Path::new("/d/f"), OpenMode::Create).unwrap();
    disk.inject(Fault {
        operation: Operation::Write,
        skip: 1,
        error: ErrorKind::StorageFull,
        lasting: false,
    });
    file.write_all_at(&[IoSlice::new(b"x")], 0).unwrap();
    assert_eq!(
        file.write_all_at(&[IoSlice::new(b"x")], 1).err().unwrap().kind(),
        ErrorKind::StorageFull
    );
    file.write_all_at(&[IoSlice::new(b"x")], 1).unwrap();
}

#[test]
fn what_is_no_file_is_refused_without_a_wait() {
    let temporary = tempfile::tempdir().unwrap();
    let pipe = temporary.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
    for mode in [OpenMode::Read, OpenMode::ReadWrite, OpenMode::Create] {
        let refused = RealDisk.open(&pipe, mode).err().unwrap();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{mode:?}");
    }
}
