//! Who votes (KIP-853): each voter's id, the id of its metadata directory, and where it can be reached.

use std::collections::BTreeMap;
use std::fmt;

use model::{BrokerId, DirectoryId, Offset};
use protocol::Text;

/// One replica of the metadata log: a node that comes back with an empty disk is another replica.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ReplicaKey {
    pub id: BrokerId,
    /// Zero where the directory is not known (kraft.version 0).
    pub directory: DirectoryId,
}

impl fmt::Display for ReplicaKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.id, self.directory)
    }
}

/// The feature `kraft.version`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum KRaftVersion {
    /// 0: voters come from the configuration.
    Static = 0,
    /// 1: voters come from the log.
    Dynamic = 1,
}

impl KRaftVersion {
    /// `None` for a level that does not exist.
    #[must_use]
    pub const fn from_level(level: i16) -> Option<Self> {
        match level {
            0 => Some(KRaftVersion::Static),
            1 => Some(KRaftVersion::Dynamic),
            _ => None,
        }
    }

    #[must_use]
    pub const fn level(self) -> i16 {
        self as i16
    }
}

/// Where a voter listens under one listener name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VoterEndpoint {
    pub name: Text,
    pub host: Text,
    pub port: u16,
}

/// One voter as the voter set records it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Voter {
    pub key: ReplicaKey,
    pub endpoints: Vec<VoterEndpoint>,
    /// The levels of kraft.version it supports, least and greatest.
    pub kraft_versions: (i16, i16),
}

/// The voters by id. Ids are unique: that is what makes it a map.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct VoterSet(BTreeMap<BrokerId, Voter>);

/// Where the voter set in force stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VoterSetSource {
    /// In the checkpoint that formatting wrote (offset 0, epoch 0), which is never sent to others: the first leader
    /// repeats it in the log.
    Bootstrap,
    /// In a later snapshot, or in the log at this offset.
    Log(Offset),
}

impl VoterSet {
    #[must_use]
    pub fn new(voters: impl IntoIterator<Item = Voter>) -> Self {
        VoterSet(voters.into_iter().map(|voter| (voter.key.id, voter)).collect())
    }

    #[must_use]
    pub fn get(&self, id: BrokerId) -> Option<&Voter> {
        self.0.get(&id)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Voter> {
        self.0.values()
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `replica` votes: same id, and the same directory unless the set does not know it.
    #[must_use]
    pub fn is_voter(&self, replica: ReplicaKey) -> bool {
        self.get(replica.id)
            .is_some_and(|voter| voter.key.directory.is_zero() || voter.key.directory == replica.directory)
    }
}
