//! The names of partition folders: `TOPIC-N`, and with a suffix when they are out of use.

use model::{PartitionIndex, TopicName, TopicPartition, Uuid};

/// Kafka cuts the topic's name so that a folder's name has at most this many characters.
const NAME_LENGTH_MAX: usize = 255;

/// What a folder is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FolderKind {
    /// A partition's log in use.
    Partition,
    /// To be removed.
    Deleted,
    /// Not known to the metadata; kept.
    Stray,
    /// A replica on its way from another directory of the node.
    Future,
}

impl FolderKind {
    fn suffix(self) -> &'static str {
        match self {
            FolderKind::Partition => "",
            FolderKind::Deleted => "-delete",
            FolderKind::Stray => "-stray",
            FolderKind::Future => "-future",
        }
    }
}

/// A folder of a log directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Folder {
    pub name: String,
    /// For folders out of use the topic's name may be cut short.
    pub partition: TopicPartition,
    pub kind: FolderKind,
}

impl Folder {
    /// `None` for names of other things.
    #[must_use]
    pub fn parse(name: &str) -> Option<Folder> {
        let set_aside = [FolderKind::Deleted, FolderKind::Stray, FolderKind::Future]
            .into_iter()
            .find_map(|kind| Some((kind, name.strip_suffix(kind.suffix())?.rsplit_once('.')?)))
            .filter(|(_, (_, unique))| unique.len() == 32 && unique.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let (kind, partition) = match set_aside {
            Some((kind, (partition, _))) => (kind, partition),
            None => (FolderKind::Partition, name),
        };
        let (topic, number) = partition.rsplit_once('-')?;
        if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let partition = TopicPartition {
            topic: TopicName::new(topic).ok()?,
            partition: PartitionIndex::from_wire(number.parse().ok()?)?,
        };
        Some(Folder {
            name: name.to_owned(),
            partition,
            kind,
        })
    }
}

pub(super) fn set_aside_name(partition: &TopicPartition, unique: Uuid, kind: FolderKind) -> String {
    let unique: String = unique.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    let suffix = format!("-{}.{unique}{}", partition.partition, kind.suffix());
    let room = NAME_LENGTH_MAX.saturating_sub(suffix.len());
    let topic: String = partition.topic.as_str().chars().take(room).collect();
    format!("{topic}{suffix}")
}
