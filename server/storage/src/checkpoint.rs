//! Kafka's checkpoint files of a log directory: an offset for each partition.
//!
//! ```text
//! 0              version
//! 2              number of lines
//! first 0 1200   topic, partition, offset
//! first 1 900
//! ```
//! Files are replaced whole, so that a crash leaves the old or the new one.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use model::{Offset, PartitionIndex, TopicName, TopicPartition};

use crate::disk::{Disk, read_small_file, replace_file};

/// Everything below was synced.
pub const RECOVERY_POINT_CHECKPOINT: &str = "recovery-point-offset-checkpoint";
/// Logs whose start is not that of their first segment.
pub const LOG_START_CHECKPOINT: &str = "log-start-offset-checkpoint";
/// Compacted logs: everything below was cleaned.
pub const CLEANER_CHECKPOINT: &str = "cleaner-offset-checkpoint";
/// High watermarks.
pub const HIGH_WATERMARK_CHECKPOINT: &str = "replication-offset-checkpoint";

const CHECKPOINT_BYTES_MAX: usize = 256 << 20;

/// Offsets by partition.
pub type Offsets = BTreeMap<TopicPartition, Offset>;

/// Why a checkpoint cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    #[error("line {line} of the checkpoint {name} is malformed")]
    Malformed { name: String, line: usize },
    #[error("reading the checkpoint {name}")]
    Io {
        name: String,
        #[source]
        error: io::Error,
    },
}

/// The offsets of the checkpoint `name` in `directory`; none if there is no such file.
///
/// # Errors
/// If the file is there but cannot be read or is malformed.
pub fn read_checkpoint<D: Disk>(disk: &D, directory: &Path, name: &str) -> Result<Offsets, CheckpointError> {
    let bytes = match read_small_file(disk, &directory.join(name), CHECKPOINT_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Offsets::new()),
        Err(error) => {
            return Err(CheckpointError::Io {
                name: name.to_owned(),
                error,
            });
        }
    };
    parse(&String::from_utf8_lossy(&bytes)).map_err(|line| CheckpointError::Malformed {
        name: name.to_owned(),
        line,
    })
}

/// Replaces the checkpoint `name` in `directory`; durable when this returns.
///
/// # Errors
/// As the disk says; the old checkpoint stands then.
pub fn write_checkpoint<D: Disk>(disk: &D, directory: &Path, name: &str, offsets: &Offsets) -> io::Result<()> {
    replace_file(disk, &directory.join(name), to_text(offsets).as_bytes())
}

fn to_text(offsets: &Offsets) -> String {
    let mut text = format!("0\n{}\n", offsets.len());
    for (partition, offset) in offsets {
        text.push_str(&format!("{} {} {offset}\n", partition.topic, partition.partition));
    }
    text
}

/// The offsets, or the number of the first wrong line.
fn parse(text: &str) -> Result<Offsets, usize> {
    // Kafka makes some of these files before it has anything to say.
    if text.is_empty() {
        return Ok(Offsets::new());
    }
    let mut lines = text.lines();
    if lines.next() != Some("0") {
        return Err(1);
    }
    let count: usize = lines.next().and_then(|line| line.parse().ok()).ok_or(2usize)?;
    let mut offsets = Offsets::new();
    for (number, line) in (3usize..).zip(lines) {
        let (partition, offset) = parse_line(line).ok_or(number)?;
        offsets.insert(partition, offset);
    }
    if offsets.len() == count { Ok(offsets) } else { Err(2) }
}

fn parse_line(line: &str) -> Option<(TopicPartition, Offset)> {
    let mut fields = line.split_ascii_whitespace();
    let topic = TopicName::new(fields.next()?).ok()?;
    let partition = PartitionIndex::from_wire(fields.next()?.parse().ok()?)?;
    let offset = Offset::from_wire(fields.next()?.parse().ok()?)?;
    fields
        .next()
        .is_none()
        .then_some((TopicPartition { topic, partition }, offset))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::SimDisk;

    fn offsets() -> Offsets {
        let partition = |topic: &str, partition| TopicPartition {
            topic: TopicName::new(topic).unwrap(),
            partition: PartitionIndex::from_wire(partition).unwrap(),
        };
        [
            (partition("first", 0), Offset::new(1200)),
            (partition("first", 1), Offset::new(900)),
        ]
        .into()
    }

    #[test]
    fn the_text_is_kafkas() {
        assert_eq!(to_text(&offsets()), "0\n2\nfirst 0 1200\nfirst 1 900\n");
        assert_eq!(to_text(&Offsets::new()), "0\n0\n");
    }

    #[test]
    fn a_checkpoint_is_read_back_and_a_malformed_one_refused() {
        let disk = SimDisk::new(1);
        let directory = Path::new("/d");
        disk.create_directory(directory).unwrap();
        assert!(
            read_checkpoint(&disk, directory, LOG_START_CHECKPOINT)
                .unwrap()
                .is_empty()
        );
        write_checkpoint(&disk, directory, LOG_START_CHECKPOINT, &offsets()).unwrap();
        assert_eq!(
            read_checkpoint(&disk, directory, LOG_START_CHECKPOINT).unwrap(),
            offsets()
        );
        for (text, line) in [
            ("1\n0\n", 1),
            ("0\nx\n", 2),
            ("0\n2\na 0 1\n", 2),
            ("0\n1\na 0\n", 3),
            ("0\n1\na 0 -1\n", 3),
        ] {
            assert_eq!(parse(text), Err(line), "{text:?}");
        }
    }
}
