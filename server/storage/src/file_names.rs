//! What the files of a partition are called: twenty digits of an offset and a suffix, as Kafka names them.

use std::path::{Path, PathBuf};

use model::Offset;

pub(crate) const LEADER_EPOCH_CHECKPOINT: &str = "leader-epoch-checkpoint";
/// The checksum of that file. Kafka passes over it, and where it has written the other it does not fit.
pub(crate) const LEADER_EPOCH_CHECKSUM: &str = "leader-epoch-checkpoint.crc";

/// The kinds of files whose names are offsets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Kind {
    Log,
    OffsetIndex,
    TimeIndex,
    TransactionIndex,
    ProducerSnapshot,
    /// See [`crate::batch_bases`]. Not a file that Kafka knows.
    Bases,
}

/// Marks files that are about to be unlinked.
pub(crate) const DELETED_SUFFIX: &str = ".deleted";
/// Marks files that a cleaner has not finished.
pub(crate) const CLEANED_SUFFIX: &str = ".cleaned";
/// Marks files that are on their way into the place of others.
pub(crate) const SWAP_SUFFIX: &str = ".swap";
/// Marks files of [`crate::disk::replace_file`] that were not finished.
pub(crate) const TEMPORARY_SUFFIX: &str = ".tmp";

const DIGITS: usize = 20;

/// The file at `path` under a suffix of the above.
pub(crate) fn suffixed(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

impl Kind {
    /// The files that make up a segment.
    pub(crate) const OF_SEGMENT: [Kind; 5] = [
        Kind::Log,
        Kind::OffsetIndex,
        Kind::TimeIndex,
        Kind::TransactionIndex,
        Kind::Bases,
    ];
    const ALL: [Kind; 6] = [
        Kind::Log,
        Kind::OffsetIndex,
        Kind::TimeIndex,
        Kind::TransactionIndex,
        Kind::ProducerSnapshot,
        Kind::Bases,
    ];

    fn suffix(self) -> &'static str {
        match self {
            Kind::Log => ".log",
            Kind::OffsetIndex => ".index",
            Kind::TimeIndex => ".timeindex",
            Kind::TransactionIndex => ".txnindex",
            Kind::ProducerSnapshot => ".snapshot",
            Kind::Bases => ".bases",
        }
    }

    /// Where the file of this kind for `offset` is.
    pub(crate) fn path(self, directory: &Path, offset: Offset) -> PathBuf {
        directory.join(format!("{:0width$}{}", offset.get(), self.suffix(), width = DIGITS))
    }

    /// Which file `name` is, if it is one of these.
    pub(crate) fn parse(name: &str) -> Option<(Kind, Offset)> {
        let (digits, suffix) = name.split_at_checked(DIGITS)?;
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let kind = Self::ALL.into_iter().find(|kind| kind.suffix() == suffix)?;
        Some((kind, Offset::from_wire(digits.parse().ok()?)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_twenty_digits_and_a_suffix() {
        let path = Kind::TimeIndex.path(Path::new("/d"), Offset::new(42));
        assert_eq!(path, Path::new("/d/00000000000000000042.timeindex"));
        assert_eq!(
            Kind::parse("00000000000000000042.timeindex"),
            Some((Kind::TimeIndex, Offset::new(42)))
        );
        for other in [
            "42.log",
            "00000000000000000042.log.deleted",
            "leader-epoch-checkpoint",
            "99999999999999999999.log",
        ] {
            assert_eq!(Kind::parse(other), None, "{other}");
        }
    }
}
