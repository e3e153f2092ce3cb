//! What an operator has to know of a directory that changes hands: nothing that is lost or stops working goes unsaid.

use std::fmt;
use std::path::PathBuf;

use metadata::image::{ConfigResource, ConfigResourceType};
use model::{BrokerId, TopicPartition};
use storage::transfer::OpenTransaction;

/// One thing to know.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Notice {
    Acls(usize),
    ClientQuotas(usize),
    ScramCredentials(usize),
    DelegationTokens(usize),
    ConfigWithoutEffect {
        resource: ConfigResource,
        key: String,
    },
    /// A key of ours, which the other side would not know.
    ConfigLeftOut {
        resource: ConfigResource,
        key: String,
    },
    ConsumerGroups(usize),
    ShareGroups(usize),
    StreamsGroups(usize),
    TransactionState {
        topic: String,
    },
    ShareState {
        topic: String,
    },
    AbortedTransactions {
        partition: TopicPartition,
        count: u64,
    },
    OpenTransaction {
        partition: TopicPartition,
        transaction: OpenTransaction,
    },
    /// A node of ours has found records that cannot be read.
    Damaged {
        partition: TopicPartition,
    },
    /// An internal topic of ours.
    OwnTopic {
        topic: String,
    },
    /// A folder that the metadata does not know.
    Stray {
        folder: String,
    },
    FolderMissing {
        partition: TopicPartition,
    },
    FutureLeftOut(PathBuf),
    UnknownLeftOut(PathBuf),
    OtherBroker(BrokerId),
    OtherController(BrokerId),
    /// The voters stood in the configuration, and stand in the log from now on.
    VotersIntoLog,
}

impl Notice {
    /// For programs.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Notice::Acls(_) => "acls",
            Notice::ClientQuotas(_) => "client-quotas",
            Notice::ScramCredentials(_) => "scram-credentials",
            Notice::DelegationTokens(_) => "delegation-tokens",
            Notice::ConfigWithoutEffect { .. } => "config-without-effect",
            Notice::ConfigLeftOut { .. } => "config-left-out",
            Notice::ConsumerGroups(_) => "consumer-groups",
            Notice::ShareGroups(_) => "share-groups",
            Notice::StreamsGroups(_) => "streams-groups",
            Notice::TransactionState { .. } => "transaction-state",
            Notice::ShareState { .. } => "share-state",
            Notice::AbortedTransactions { .. } => "aborted-transactions",
            Notice::OpenTransaction { .. } => "open-transaction",
            Notice::Damaged { .. } => "damaged",
            Notice::OwnTopic { .. } => "own-topic",
            Notice::Stray { .. } => "stray",
            Notice::FolderMissing { .. } => "folder-missing",
            Notice::FutureLeftOut(_) => "future-left-out",
            Notice::UnknownLeftOut(_) => "unknown-left-out",
            Notice::OtherBroker(_) => "other-broker",
            Notice::OtherController(_) => "other-controller",
            Notice::VotersIntoLog => "voters-into-log",
        }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::Acls(count) => write!(
                f,
                "{count} access control entries are kept and not enforced: whoever reaches a listener may do everything"
            ),
            Notice::ClientQuotas(count) => write!(f, "quotas of {count} entities are kept and not applied"),
            Notice::ScramCredentials(count) => {
                write!(f, "{count} SCRAM credentials are kept; nobody logs in with them")
            }
            Notice::DelegationTokens(count) => {
                write!(f, "{count} delegation tokens are kept; nobody logs in with them")
            }
            Notice::ConfigWithoutEffect { resource, key } => {
                write!(f, "{key} of {} is kept and has no effect", Named(resource))
            }
            Notice::ConfigLeftOut { resource, key } => {
                write!(f, "{key} of {} is left out: Kafka does not know it", Named(resource))
            }
            Notice::ConsumerGroups(count) => write!(
                f,
                "{count} groups of the consumer protocol: their offsets are kept and served, members join anew by the \
                 classic protocol"
            ),
            Notice::ShareGroups(count) => write!(f, "{count} share groups are kept and not served"),
            Notice::StreamsGroups(count) => write!(
                f,
                "{count} groups of the streams protocol: their offsets are kept and served, the protocol is not"
            ),
            Notice::TransactionState { topic } => {
                write!(f, "{topic} is kept; nobody coordinates transactions")
            }
            Notice::ShareState { topic } => write!(f, "{topic} is kept; nobody coordinates share groups"),
            Notice::AbortedTransactions { partition, count } => write!(
                f,
                "{partition} holds {count} aborted transactions: readers see their records, read_committed ones too"
            ),
            Notice::OpenTransaction { partition, transaction } => write!(
                f,
                "{partition} holds a transaction of producer {} that began at offset {} and has not ended: nothing here \
                 ends it, and readers see its records",
                transaction.producer, transaction.first_offset
            ),
            Notice::Damaged { partition } => write!(
                f,
                "{partition} holds damaged records, which are taken along as they are: log verify says which"
            ),
            Notice::OwnTopic { topic } => write!(f, "{topic} is Millstream's own; Kafka serves it as any other topic"),
            Notice::Stray { folder } => {
                write!(
                    f,
                    "the metadata does not know {folder}: it is taken along, and a node sets it aside"
                )
            }
            Notice::FolderMissing { partition } => write!(f, "{partition} has no folder: it begins empty"),
            Notice::FutureLeftOut(path) => {
                write!(f, "{} is a replica that was on its way: left out", path.display())
            }
            Notice::UnknownLeftOut(path) => write!(f, "{} is nothing of a log directory: left out", path.display()),
            Notice::OtherBroker(id) => write!(f, "broker {id} is registered, fenced, and holds nothing"),
            Notice::OtherController(id) => write!(f, "controller {id} is registered and does not vote"),
            Notice::VotersIntoLog => write!(
                f,
                "controller.quorum.voters named the voter: from now on the metadata log does (kraft.version 1), and the \
                 key has no more say"
            ),
        }
    }
}

struct Named<'a>(&'a ConfigResource);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.0.kind {
            ConfigResourceType::Topic => "topic",
            ConfigResourceType::Broker if self.0.name.is_empty() => return f.write_str("all brokers"),
            ConfigResourceType::Broker => "broker",
            ConfigResourceType::ClientMetrics => "client metrics subscription",
            ConfigResourceType::Group => "group",
        };
        write!(f, "{kind} {}", self.0.name)
    }
}
