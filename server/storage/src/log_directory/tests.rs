//! A directory's life on the simulated disk.

use model::{BrokerId, PartitionIndex, TopicName};

use super::*;
use crate::disk::{SimDisk, replace_file};

const ID: Uuid = Uuid::from_bytes([7; 16]);
const OTHER: Uuid = Uuid::from_bytes([9; 16]);

fn formatted() -> SimDisk {
    let disk = SimDisk::new(1);
    format(&disk, Path::new("/d"), &properties()).unwrap();
    disk
}

fn properties() -> MetaProperties {
    MetaProperties {
        version: 1,
        cluster_id: Some("c".to_owned()),
        node_id: BrokerId::from_wire(1),
        directory_id: Some(ID),
    }
}

fn open(disk: &SimDisk) -> LogDirectory<SimDisk> {
    LogDirectory::open(disk.clone(), Path::new("/d"), OTHER).unwrap()
}

fn partition() -> TopicPartition {
    TopicPartition {
        topic: TopicName::new("a-b.c").unwrap(),
        partition: PartitionIndex::from_wire(12).unwrap(),
    }
}

#[test]
fn a_directory_is_formatted_once() {
    let disk = formatted();
    let again = format(&disk, Path::new("/d"), &properties());
    assert!(matches!(
        again,
        Err(DirectoryError::MetaProperties(MetaPropertiesError::AlreadyFormatted(_)))
    ));
    assert_eq!(open(&disk).properties().directory_id, Some(ID));
}

#[test]
fn only_a_clean_end_is_taken_for_one_and_only_once() {
    let disk = formatted();
    let directory = open(&disk);
    assert!(!directory.was_clean());
    directory.mark_clean(Some(17)).unwrap();
    let text = read_small_file(&disk, &Path::new("/d").join(CLEAN_SHUTDOWN_FILE), 100).unwrap();
    assert_eq!(text, br#"{"version":0,"brokerEpoch":17}"#);
    let directory = open(&disk);
    assert_eq!(
        (directory.was_clean(), directory.previous_broker_epoch()),
        (true, Some(17))
    );
    assert!(!open(&disk).was_clean());
}

#[test]
fn checkpoints_are_there_at_the_next_start() {
    let disk = formatted();
    let mut directory = open(&disk);
    directory.set_recovery_point(&partition(), Offset::new(5));
    directory.set_log_start(&partition(), Offset::new(2));
    directory.set_high_watermark(&partition(), Offset::new(4));
    directory.write_recovery_points().unwrap();
    directory.write_log_starts().unwrap();
    directory.write_high_watermarks().unwrap();
    directory.set_cleaned_to(&partition(), Offset::new(3));
    directory.write_cleaned_to().unwrap();
    let directory = open(&disk);
    let start = Start {
        clean: false,
        recovery_point: Offset::new(4),
        log_start_offset: Offset::new(2),
    };
    assert_eq!(
        directory.start_of(&partition()),
        start,
        "the lesser of the two that say what was synced"
    );
    assert_eq!(directory.high_watermark_of(&partition()), Offset::new(4));
    assert_eq!(directory.cleaned_to(&partition()), Some(Offset::new(3)));
}

#[test]
fn the_cleaners_checkpoint_is_kafkas_and_one_that_is_malformed_is_no_obstacle() {
    let disk = formatted();
    let path = Path::new("/d/cleaner-offset-checkpoint");
    let mut directory = open(&disk);
    directory.create_partition(&partition(), ID).unwrap();
    directory.set_cleaned_to(&partition(), Offset::new(3));
    directory.write_cleaned_to().unwrap();
    assert_eq!(read_small_file(&disk, path, 100).unwrap(), b"0\n1\na-b.c 12 3\n");
    directory.delete_partition(&partition(), OTHER).unwrap();
    assert_eq!(read_small_file(&disk, path, 100).unwrap(), b"0\n0\n");
    drop(directory);
    replace_file(&disk, path, b"7\nwhat").unwrap();
    assert_eq!(open(&disk).cleaned_to(&partition()), None);
}

#[test]
fn a_checkpoint_that_is_damaged_makes_more_to_read_and_never_less() {
    for (damaged, left) in [
        (RECOVERY_POINT_CHECKPOINT, 0),
        (HIGH_WATERMARK_CHECKPOINT, 5),
        (LOG_START_CHECKPOINT, 4),
    ] {
        let disk = formatted();
        let mut directory = open(&disk);
        directory.set_recovery_point(&partition(), Offset::new(5));
        directory.set_high_watermark(&partition(), Offset::new(4));
        directory.write_recovery_points().unwrap();
        directory.write_log_starts().unwrap();
        directory.write_high_watermarks().unwrap();
        drop(directory);
        replace_file(&disk, &Path::new("/d").join(damaged), b"0\n1\na-b.c 12 x\n").unwrap();
        assert_eq!(
            open(&disk).start_of(&partition()).recovery_point,
            Offset::new(left),
            "{damaged}"
        );
    }
}

#[test]
fn an_id_with_a_flipped_bit_is_damage_and_not_another_topic() {
    let disk = formatted();
    let directory = open(&disk);
    directory.create_partition(&partition(), ID).unwrap();
    let mut bytes = *ID.as_bytes();
    bytes[3] ^= 0x10;
    let near = model::Uuid::from_bytes(bytes);
    assert!(matches!(
        directory.create_partition(&partition(), near),
        Err(DirectoryError::PartitionMetadata(_))
    ));
    assert_eq!(directory.topic_id_near(&partition(), OTHER).unwrap(), Some(ID));
}

#[test]
fn a_folder_belongs_to_one_topic_id() {
    let disk = formatted();
    let mut directory = open(&disk);
    let path = directory.create_partition(&partition(), ID).unwrap();
    assert_eq!(path, Path::new("/d/a-b.c-12"));
    let text = read_small_file(&disk, &path.join("partition.metadata"), 100).unwrap();
    assert_eq!(text, b"version: 0\ntopic_id: BwcHBwcHBwcHBwcHBwcHBw");
    directory.create_partition(&partition(), ID).unwrap();
    assert!(matches!(
        directory.create_partition(&partition(), OTHER),
        Err(DirectoryError::TopicId { .. })
    ));
    let deleted = directory.delete_partition(&partition(), OTHER).unwrap();
    assert_eq!(
        deleted,
        Path::new("/d/a-b.c-12.09090909090909090909090909090909-delete")
    );
    directory.create_partition(&partition(), OTHER).unwrap();
    directory.set_stray_aside(&partition(), OTHER).unwrap();
    let kinds: Vec<FolderKind> = directory.folders().unwrap().iter().map(|folder| folder.kind).collect();
    assert_eq!(kinds, [FolderKind::Deleted, FolderKind::Stray]);
    directory.remove_folder(&deleted).unwrap();
    assert!(
        directory
            .remove_folder(Path::new("/d/a-b.c-12.09090909090909090909090909090909-stray"))
            .is_err()
    );
    assert_eq!(directory.folders().unwrap().len(), 1);
}

#[test]
fn folders_are_told_from_other_things_by_their_names() {
    let kind = |name: &str| Folder::parse(name).map(|folder| (folder.partition.to_string(), folder.kind));
    assert_eq!(kind("first-0"), Some(("first-0".to_owned(), FolderKind::Partition)));
    assert_eq!(
        kind("a.b-delete-3"),
        Some(("a.b-delete-3".to_owned(), FolderKind::Partition))
    );
    for other in [
        "first",
        "first-",
        "-0",
        "first-x",
        "a/b-0",
        "lost+found",
        "first-99999999999",
    ] {
        assert_eq!(kind(other), None, "{other}");
    }
}

#[test]
fn a_directory_in_use_is_not_opened_again() {
    let temporary = tempfile::tempdir().unwrap();
    format(&crate::RealDisk, temporary.path(), &properties()).unwrap();
    let open = || LogDirectory::open(crate::RealDisk, temporary.path(), OTHER);
    let first = open().map_err(|error| error.to_string());
    assert!(first.is_ok());
    assert!(matches!(open(), Err(DirectoryError::Locked(_))));
    drop(first);
    assert!(open().is_ok());
}
