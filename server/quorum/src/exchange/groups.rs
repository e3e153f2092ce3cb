//! Which groups of kinds other than the classic one stand in the offsets topic: by the names of their group records.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use model::record_batch::{Batches, DecompressionLimit, RecordReader};
use protocol::internal_records::group_coordinator::Key;
use storage::Disk;
use storage::inspect::{BatchFile, Step};
use storage::transfer::PartitionFolder;

/// The topic whose records they are.
pub(super) const OFFSETS_TOPIC: &str = "__consumer_offsets";
const LOG_SUFFIX: &str = ".log";
/// No more names of a kind are kept: from there on there are "at least" so many.
const NAMES_MAX: usize = 100_000;

/// Groups by their kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OtherGroups {
    /// Of the consumer protocol (KIP-848).
    pub consumer: BTreeSet<String>,
    pub share: BTreeSet<String>,
    pub streams: BTreeSet<String>,
}

/// Adds what the folder of one partition of the offsets topic holds. What cannot be read has no groups: it is for the
/// coordinator that will load it to say so.
///
/// # Errors
/// As the disk says.
pub(super) fn gather<D: Disk>(
    disk: &D,
    directory: &Path,
    partition: &PartitionFolder,
    groups: &mut OtherGroups,
) -> io::Result<()> {
    let logs = partition.files.iter().filter(|file| file.name.ends_with(LOG_SUFFIX));
    for log in logs {
        let file = BatchFile::open(disk, &directory.join(&partition.folder.name).join(&log.name))?;
        file.walk(0, |step| {
            let Step::Batch(batch) = step else { return Ok(true) };
            if !batch.is_sound || batch.header.attributes.is_control() {
                return Ok(true);
            }
            if let Ok(bytes) = file.read(&batch) {
                Batches::new(&bytes).flatten().for_each(|batch| groups.see(batch));
            }
            Ok::<bool, io::Error>(true)
        })?;
    }
    Ok(())
}

impl OtherGroups {
    fn see(&mut self, batch: model::record_batch::Batch<'_>) {
        let Ok(mut records) = RecordReader::new(batch, DecompressionLimit::DEFAULT) else {
            return;
        };
        while let Ok(Some(record)) = records.next_record() {
            let Some(key) = record.key else { continue };
            // A type that is newer than this version is not counted.
            let (names, id) = match Key::from_bytes(bytes::Bytes::copy_from_slice(key)) {
                Ok(Key::ConsumerGroupMetadata(key)) => (&mut self.consumer, key.group_id),
                Ok(Key::ShareGroupMetadata(key)) => (&mut self.share, key.group_id),
                Ok(Key::StreamsGroupMetadata(key)) => (&mut self.streams, key.group_id),
                _ => continue,
            };
            if record.value.is_none() {
                names.remove(&*id);
            } else if names.len() < NAMES_MAX {
                names.insert(id.to_string());
            }
        }
    }
}
