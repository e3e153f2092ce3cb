//! A node's configuration as plain typed fields, one small struct for each of its users.

use super::broker_rules::{self, log_directories};
use super::error::ConfigError;
use super::layers::{BrokerConfigs, BrokerValues, Configs};
use super::listeners::{Address, ListenerSettings, parse_voter};
use super::topic_settings::{self, TopicSettings};
use model::BrokerId;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// `process.roles`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NodeRoles {
    pub broker: bool,
    pub controller: bool,
}

/// A voter of `controller.quorum.voters`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Voter {
    pub id: BrokerId,
    pub address: Address,
}

/// The controller quorum and the metadata log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QuorumSettings {
    /// The static voters of KIP-595; empty where the voters stand in the log itself (KIP-853).
    pub voters: Vec<Voter>,
    pub bootstrap_servers: Vec<Address>,
    pub election_timeout: Duration,
    pub election_backoff_max: Duration,
    pub fetch_timeout: Duration,
    pub append_linger: Duration,
    pub request_timeout: Duration,
    pub retry_backoff: Duration,
    pub fetch_bytes_max: u32,
    pub fetch_snapshot_bytes_max: u32,
    pub auto_join: bool,
    pub metadata_segment_bytes: u32,
    pub metadata_segment: Duration,
    pub metadata_retention: Option<Duration>,
    pub metadata_retention_bytes: Option<u64>,
    pub snapshot_after_bytes: u64,
    /// `None` if snapshots are not made by time.
    pub snapshot_interval: Option<Duration>,
    /// How long the active controller writes nothing before it writes a no-op record; `None` for ever.
    pub idle_interval_max: Option<Duration>,
}

/// A broker's registration and lease at the controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BrokerHeartbeatSettings {
    pub interval: Duration,
    pub session_timeout: Duration,
    pub initial_registration_timeout: Duration,
}

/// Sockets and requests.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConnectionSettings {
    pub request_bytes_max: usize,
    pub connections_max: usize,
    pub connections_per_ip_max: usize,
    pub connections_per_ip_overrides: BTreeMap<String, usize>,
    /// Connections a second.
    pub creation_rate_max: usize,
    /// `None` if idle connections stay.
    pub idle_max: Option<Duration>,
    pub queued_requests_max: usize,
    /// `None` leaves the size to the operating system.
    pub send_buffer_bytes: Option<usize>,
    pub receive_buffer_bytes: Option<usize>,
    pub listen_backlog: u32,
    pub request_timeout: Duration,
    pub failed_authentication_delay: Duration,
}

/// Limits of Fetch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FetchSettings {
    pub response_bytes_max: u32,
    pub session_cache_slots: usize,
    pub request_partitions_max: usize,
}

/// What storage needs to know beyond a topic's own settings.
#[derive(Clone, PartialEq, Debug)]
pub struct LogSettings {
    pub directories: Vec<String>,
    /// Where `__cluster_metadata` lives: its own directory, or the first of the others.
    pub metadata_directory: String,
    /// How long the controller may be out of reach when a directory has failed.
    pub directory_failure_timeout: Duration,
    /// What is held back in each directory for a full disk; 0 for nothing.
    pub reserve_bytes: u64,
    pub retention_check_interval: Duration,
    pub initial_task_delay: Duration,
    pub recovery_point_interval: Duration,
    pub start_offset_checkpoint_interval: Duration,
    /// How many logs of a directory are opened at a time.
    pub recovery_threads: usize,
    pub cleaner_enabled: bool,
    pub cleaner_backoff: Duration,
    pub cleaner_threads: usize,
    pub cleaner_dedupe_buffer_bytes: u64,
    /// How full the key map may get.
    pub cleaner_load_factor: f64,
    pub cleaner_io_buffer_bytes: usize,
    /// `None` for no limit.
    pub cleaner_bytes_per_second: Option<f64>,
    /// `None` where logs are not scrubbed.
    pub scrub_bytes_per_second: Option<u64>,
    /// What moves between log directories may copy; `None` for no limit.
    pub move_bytes_per_second: Option<f64>,
    pub producer_id_expiration: Duration,
    pub producer_id_expiration_check_interval: Duration,
}

/// Followers and leaders.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReplicationSettings {
    pub lag_time_max: Duration,
    pub fetch_bytes_max: u32,
    pub fetch_response_bytes_max: u32,
    pub fetch_min_bytes: u32,
    pub fetch_wait_max: Duration,
    pub fetch_backoff: Duration,
    pub socket_timeout: Duration,
    pub fetchers: usize,
    pub high_watermark_checkpoint_interval: Duration,
    pub auto_leader_rebalance: bool,
    pub leader_imbalance_check_interval: Duration,
}

/// Groups of the classic protocol, and committed offsets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupSettings {
    pub session_timeout_min: Duration,
    pub session_timeout_max: Duration,
    pub initial_rebalance_delay: Duration,
    pub size_max: usize,
    pub offset_metadata_bytes_max: usize,
    pub offset_retention: Duration,
    pub offset_retention_check_interval: Duration,
    pub offset_commit_timeout: Duration,
}

/// An internal topic as it is created.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InternalTopicSettings {
    pub partitions: u32,
    pub replication_factor: u16,
    pub segment_bytes: u32,
    /// `None` where the topic has the broker's.
    pub min_insync_replicas: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TransactionSettings {
    pub timeout_max: Duration,
    pub transactional_id_expiration: Duration,
    pub abort_timed_out_interval: Duration,
    pub partition_verification: bool,
}

/// Everything that a node reads from its configuration.
#[derive(Clone, PartialEq, Debug)]
pub struct BrokerSettings {
    pub node_id: BrokerId,
    pub roles: NodeRoles,
    pub rack: Option<String>,
    pub listeners: ListenerSettings,
    pub quorum: QuorumSettings,
    pub heartbeat: BrokerHeartbeatSettings,
    pub connections: ConnectionSettings,
    pub fetch: FetchSettings,
    pub log: LogSettings,
    pub replication: ReplicationSettings,
    pub groups: GroupSettings,
    pub offsets_topic: InternalTopicSettings,
    pub transactions: TransactionSettings,
    pub transaction_topic: InternalTopicSettings,
    pub share_topic: InternalTopicSettings,
    /// For topics that are created without a number.
    pub partitions: u32,
    pub replication_factor: u16,
    pub auto_create_topics: bool,
    pub delete_topics: bool,
    pub controlled_shutdown: bool,
    /// `millstream.http.listeners`; empty for no gateway.
    pub http_listeners: Vec<SocketAddr>,
    /// What holds for topics without overrides; [`TopicSettings::resolve`] for the others.
    pub topic_defaults: TopicSettings,
    pub(super) topic_default_texts: Configs,
}

impl BrokerSettings {
    /// # Errors
    /// The first value or rule that does not hold. Names that nobody knows are not looked for: see
    /// [`super::ServerProperties`].
    pub fn resolve(configs: &BrokerConfigs) -> Result<BrokerSettings, ConfigError> {
        let values = &configs.values();
        values.check_each()?;
        broker_rules::check_rules(configs, values)?;
        let roles = values.list("process.roles")?;
        let roles = NodeRoles {
            broker: roles.iter().any(|role| role == "broker"),
            controller: roles.iter().any(|role| role == "controller"),
        };
        let node_id = BrokerId::from_wire(values.int("node.id")?).ok_or(ConfigError::Missing("node.id"))?;
        let topic_default_texts = topic_settings::default_texts(values)?;
        Ok(BrokerSettings {
            node_id,
            roles,
            rack: values.text("broker.rack")?,
            listeners: ListenerSettings::read(values, roles.broker, roles.controller)?,
            quorum: quorum(values, node_id, roles)?,
            heartbeat: BrokerHeartbeatSettings {
                interval: millis(values, "broker.heartbeat.interval.ms")?,
                session_timeout: millis(values, "broker.session.timeout.ms")?,
                initial_registration_timeout: millis(values, "initial.broker.registration.timeout.ms")?,
            },
            connections: connections(values)?,
            fetch: FetchSettings {
                response_bytes_max: count(values, "fetch.max.bytes")?,
                session_cache_slots: values.size("max.incremental.fetch.session.cache.slots")?,
                request_partitions_max: values.size("max.request.partition.size.limit")?,
            },
            log: log(values)?,
            replication: replication(values)?,
            groups: groups(values)?,
            offsets_topic: internal_topic(values, OFFSETS_TOPIC, None)?,
            transactions: TransactionSettings {
                timeout_max: millis(values, "transaction.max.timeout.ms")?,
                transactional_id_expiration: millis(values, "transactional.id.expiration.ms")?,
                abort_timed_out_interval: millis(
                    values,
                    "transaction.abort.timed.out.transaction.cleanup.interval.ms",
                )?,
                partition_verification: values.boolean("transaction.partition.verification.enable")?,
            },
            transaction_topic: internal_topic(values, TRANSACTION_TOPIC, Some("transaction.state.log.min.isr"))?,
            share_topic: internal_topic(values, SHARE_TOPIC, Some("share.coordinator.state.topic.min.isr"))?,
            partitions: count(values, "num.partitions")?,
            replication_factor: factor(values, "default.replication.factor")?,
            auto_create_topics: values.boolean("auto.create.topics.enable")?,
            delete_topics: values.boolean("delete.topic.enable")?,
            controlled_shutdown: values.boolean("controlled.shutdown.enable")?,
            http_listeners: http_listeners(values)?,
            topic_defaults: TopicSettings::defaults(&topic_default_texts),
            topic_default_texts,
        })
    }
}

/// Partitions, replication factor, segment size.
const OFFSETS_TOPIC: [&str; 3] = [
    "offsets.topic.num.partitions",
    "offsets.topic.replication.factor",
    "offsets.topic.segment.bytes",
];
const TRANSACTION_TOPIC: [&str; 3] = [
    "transaction.state.log.num.partitions",
    "transaction.state.log.replication.factor",
    "transaction.state.log.segment.bytes",
];
const SHARE_TOPIC: [&str; 3] = [
    "share.coordinator.state.topic.num.partitions",
    "share.coordinator.state.topic.replication.factor",
    "share.coordinator.state.topic.segment.bytes",
];

fn millis(values: &BrokerValues, name: &'static str) -> Result<Duration, ConfigError> {
    let value = values.integer(name)?;
    match u64::try_from(value) {
        Ok(millis) => Ok(Duration::from_millis(millis)),
        Err(_) => Err(ConfigError::invalid(
            name,
            &value.to_string(),
            "Value must be at least 0".to_owned(),
        )),
    }
}

fn count(values: &BrokerValues, name: &'static str) -> Result<u32, ConfigError> {
    let value = values.integer(name)?;
    u32::try_from(value)
        .map_err(|_| ConfigError::invalid(name, &value.to_string(), "Value must be at least 0".to_owned()))
}

fn factor(values: &BrokerValues, name: &'static str) -> Result<u16, ConfigError> {
    let value = values.integer(name)?;
    u16::try_from(value)
        .ok()
        .filter(|factor| (1..=i16::MAX.unsigned_abs()).contains(factor))
        .ok_or_else(|| ConfigError::invalid(name, &value.to_string(), "Value must be between 1 and 32767".to_owned()))
}

/// A number of which negative ones mean "no limit".
fn limit(values: &BrokerValues, name: &'static str) -> Result<Option<u64>, ConfigError> {
    Ok(u64::try_from(values.integer(name)?).ok())
}

fn quorum(values: &BrokerValues, node_id: BrokerId, roles: NodeRoles) -> Result<QuorumSettings, ConfigError> {
    let voters: Vec<Voter> = values
        .list("controller.quorum.voters")?
        .iter()
        .filter_map(|entry| parse_voter(entry))
        .map(|(id, address)| Voter {
            id: BrokerId::new(id),
            address,
        })
        .collect();
    let bootstrap_servers: Vec<Address> = values
        .list("controller.quorum.bootstrap.servers")?
        .iter()
        .filter_map(|entry| Address::parse(entry))
        .collect();
    if voters.is_empty() && bootstrap_servers.is_empty() {
        return Err(ConfigError::plain(
            "either controller.quorum.bootstrap.servers or controller.quorum.voters must name the controllers"
                .to_owned(),
        ));
    }
    if !voters.is_empty() && voters.iter().any(|voter| voter.id == node_id) != roles.controller {
        let reason = if roles.controller { "must have" } else { "must not have" };
        return Err(ConfigError::plain(format!(
            "controller.quorum.voters {reason} node {node_id}, whose process.roles {} controller",
            if roles.controller { "has" } else { "lacks" }
        )));
    }
    Ok(QuorumSettings {
        voters,
        bootstrap_servers,
        election_timeout: millis(values, "controller.quorum.election.timeout.ms")?,
        election_backoff_max: millis(values, "controller.quorum.election.backoff.max.ms")?,
        fetch_timeout: millis(values, "controller.quorum.fetch.timeout.ms")?,
        append_linger: millis(values, "controller.quorum.append.linger.ms")?,
        request_timeout: millis(values, "controller.quorum.request.timeout.ms")?,
        retry_backoff: millis(values, "controller.quorum.retry.backoff.ms")?,
        fetch_bytes_max: count(values, "controller.quorum.fetch.max.bytes")?,
        fetch_snapshot_bytes_max: count(values, "controller.quorum.fetch.snapshot.max.bytes")?,
        auto_join: values.boolean("controller.quorum.auto.join.enable")?,
        metadata_segment_bytes: match values.integer_if_set("internal.metadata.log.segment.bytes")? {
            Some(_) => count(values, "internal.metadata.log.segment.bytes")?,
            None => count(values, "metadata.log.segment.bytes")?,
        },
        metadata_segment: millis(values, "metadata.log.segment.ms")?,
        metadata_retention: limit(values, "metadata.max.retention.ms")?.map(Duration::from_millis),
        metadata_retention_bytes: limit(values, "metadata.max.retention.bytes")?,
        snapshot_after_bytes: limit(values, "metadata.log.max.record.bytes.between.snapshots")?.unwrap_or(u64::MAX),
        snapshot_interval: positive(values, "metadata.log.max.snapshot.interval.ms")?,
        idle_interval_max: positive(values, "metadata.max.idle.interval.ms")?,
    })
}

/// A time of which 0 means "never".
fn positive(values: &BrokerValues, name: &'static str) -> Result<Option<Duration>, ConfigError> {
    Ok(Some(millis(values, name)?).filter(|time| !time.is_zero()))
}

fn connections(values: &BrokerValues) -> Result<ConnectionSettings, ConfigError> {
    let buffer = |name: &'static str| Ok(limit(values, name)?.and_then(|bytes| usize::try_from(bytes).ok()));
    Ok(ConnectionSettings {
        request_bytes_max: values.size("socket.request.max.bytes")?,
        connections_max: values.size("max.connections")?,
        connections_per_ip_max: values.size("max.connections.per.ip")?,
        connections_per_ip_overrides: per_ip_overrides(values)?,
        creation_rate_max: values.size("max.connection.creation.rate")?,
        idle_max: limit(values, "connections.max.idle.ms")?.map(Duration::from_millis),
        queued_requests_max: values.size("queued.max.requests")?,
        send_buffer_bytes: buffer("socket.send.buffer.bytes")?,
        receive_buffer_bytes: buffer("socket.receive.buffer.bytes")?,
        listen_backlog: count(values, "socket.listen.backlog.size")?,
        request_timeout: millis(values, "request.timeout.ms")?,
        failed_authentication_delay: millis(values, "connection.failed.authentication.delay.ms")?,
    })
}

/// `host:count` pairs. An IPv6 address has colons of its own, the count follows the last.
fn per_ip_overrides(values: &BrokerValues) -> Result<BTreeMap<String, usize>, ConfigError> {
    let name = "max.connections.per.ip.overrides";
    let text = values.text(name)?.unwrap_or_default();
    let pairs = text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let parsed = pair
                .rsplit_once(':')
                .filter(|(host, _)| !host.is_empty())
                .and_then(|(host, count)| Some((host.trim().to_owned(), count.trim().parse().ok()?)));
            parsed.ok_or_else(|| {
                ConfigError::plain(format!(
                    "Error parsing configuration property '{name}': {pair} is not HOST:COUNT"
                ))
            })
        })
        .collect()
}

fn log(values: &BrokerValues) -> Result<LogSettings, ConfigError> {
    let directories = log_directories(values)?;
    let first = directories.first().cloned().ok_or(ConfigError::Missing("log.dirs"))?;
    let rate = values.double("log.cleaner.io.max.bytes.per.second")?;
    Ok(LogSettings {
        metadata_directory: values.text("metadata.log.dir")?.unwrap_or(first),
        directories,
        directory_failure_timeout: millis(values, "log.dir.failure.timeout.ms")?,
        reserve_bytes: limit(values, "millstream.log.reserve.bytes")?.unwrap_or(0),
        retention_check_interval: millis(values, "log.retention.check.interval.ms")?,
        initial_task_delay: millis(values, "log.initial.task.delay.ms")?,
        recovery_point_interval: millis(values, "log.flush.offset.checkpoint.interval.ms")?,
        start_offset_checkpoint_interval: millis(values, "log.flush.start.offset.checkpoint.interval.ms")?,
        recovery_threads: values.size("num.recovery.threads.per.data.dir")?,
        cleaner_enabled: values.boolean("log.cleaner.enable")?,
        cleaner_backoff: millis(values, "log.cleaner.backoff.ms")?,
        cleaner_threads: values.size("log.cleaner.threads")?,
        cleaner_load_factor: values.double("log.cleaner.io.buffer.load.factor")?,
        cleaner_io_buffer_bytes: values.size("log.cleaner.io.buffer.size")?,
        cleaner_dedupe_buffer_bytes: limit(values, "log.cleaner.dedupe.buffer.size")?.unwrap_or(0),
        cleaner_bytes_per_second: Some(rate).filter(|rate| *rate > 0.0 && *rate < f64::MAX),
        scrub_bytes_per_second: limit(values, "millstream.log.scrub.bytes.per.second")?.filter(|rate| *rate > 0),
        move_bytes_per_second: limit(values, "replica.alter.log.dirs.io.max.bytes.per.second")?
            .filter(|rate| *rate < i64::MAX.unsigned_abs())
            .map(|rate| rate as f64),
        producer_id_expiration: millis(values, "producer.id.expiration.ms")?,
        producer_id_expiration_check_interval: millis(values, "producer.id.expiration.check.interval.ms")?,
    })
}

fn replication(values: &BrokerValues) -> Result<ReplicationSettings, ConfigError> {
    let seconds = values.integer("leader.imbalance.check.interval.seconds")?;
    Ok(ReplicationSettings {
        lag_time_max: millis(values, "replica.lag.time.max.ms")?,
        fetch_bytes_max: count(values, "replica.fetch.max.bytes")?,
        fetch_response_bytes_max: count(values, "replica.fetch.response.max.bytes")?,
        fetch_min_bytes: count(values, "replica.fetch.min.bytes")?,
        fetch_wait_max: millis(values, "replica.fetch.wait.max.ms")?,
        fetch_backoff: millis(values, "replica.fetch.backoff.ms")?,
        socket_timeout: millis(values, "replica.socket.timeout.ms")?,
        fetchers: values.size("num.replica.fetchers")?,
        high_watermark_checkpoint_interval: millis(values, "replica.high.watermark.checkpoint.interval.ms")?,
        auto_leader_rebalance: values.boolean("auto.leader.rebalance.enable")?,
        leader_imbalance_check_interval: Duration::from_secs(seconds.unsigned_abs()),
    })
}

fn groups(values: &BrokerValues) -> Result<GroupSettings, ConfigError> {
    let minutes = values.integer("offsets.retention.minutes")?.unsigned_abs();
    Ok(GroupSettings {
        session_timeout_min: millis(values, "group.min.session.timeout.ms")?,
        session_timeout_max: millis(values, "group.max.session.timeout.ms")?,
        initial_rebalance_delay: millis(values, "group.initial.rebalance.delay.ms")?,
        size_max: values.size("group.max.size")?,
        offset_metadata_bytes_max: values.size("offset.metadata.max.bytes")?,
        offset_retention: Duration::from_secs(minutes.saturating_mul(60)),
        offset_retention_check_interval: millis(values, "offsets.retention.check.interval.ms")?,
        offset_commit_timeout: millis(values, "offsets.commit.timeout.ms")?,
    })
}

fn internal_topic(
    values: &BrokerValues,
    [partitions, replicas, segment]: [&'static str; 3],
    min_insync: Option<&'static str>,
) -> Result<InternalTopicSettings, ConfigError> {
    Ok(InternalTopicSettings {
        partitions: count(values, partitions)?,
        replication_factor: factor(values, replicas)?,
        segment_bytes: count(values, segment)?,
        min_insync_replicas: min_insync.map(|name| count(values, name)).transpose()?,
    })
}

fn http_listeners(values: &BrokerValues) -> Result<Vec<SocketAddr>, ConfigError> {
    let name = "millstream.http.listeners";
    let entries = values.list(name)?;
    entries
        .iter()
        .map(|entry| {
            let socket = entry
                .strip_prefix("http://")
                .and_then(|address| Address::parse(address.trim_end_matches('/')))
                .and_then(|address| {
                    let ip = if address.host == "localhost" {
                        "127.0.0.1"
                    } else {
                        &address.host
                    };
                    Some(SocketAddr::new(ip.parse::<IpAddr>().ok()?, address.port))
                });
            socket.ok_or_else(|| {
                ConfigError::invalid(name, entry, "expected http:// and an IP address with a port".to_owned())
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configs(lines: &str) -> BrokerConfigs {
        let base = "process.roles=broker,controller|node.id=1|controller.listener.names=CONTROLLER|\
                    listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093|\
                    controller.quorum.bootstrap.servers=127.0.0.1:9093";
        let lines = base.split('|').chain(lines.split('|')).filter(|line| !line.is_empty());
        let pairs = lines.map(|line| line.split_once('=').expect("a pair"));
        BrokerConfigs::from_static(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    #[test]
    fn the_defaults_are_kafkas() {
        let settings = BrokerSettings::resolve(&configs("")).expect("valid");
        assert_eq!(settings.node_id, BrokerId::new(1));
        assert_eq!(
            settings.roles,
            NodeRoles {
                broker: true,
                controller: true
            }
        );
        assert_eq!(settings.log.directories, ["/tmp/kafka-logs"]);
        assert_eq!(settings.log.cleaner_bytes_per_second, None);
        assert_eq!(settings.offsets_topic.partitions, 50);
        assert_eq!(settings.offsets_topic.replication_factor, 3);
        assert_eq!(settings.transaction_topic.min_insync_replicas, Some(2));
        assert_eq!(settings.connections.idle_max, Some(Duration::from_mins(10)));
        assert_eq!(settings.heartbeat.session_timeout, Duration::from_secs(9));
        assert_eq!(settings.http_listeners, ["127.0.0.1:8080".parse().expect("an address")]);
    }

    #[test]
    fn a_dynamic_value_takes_the_place_of_the_files_synonyms() {
        let mut configs = configs("log.retention.minutes=5|log.segment.bytes=2000000");
        configs
            .dynamic_default
            .insert("log.retention.ms".to_owned(), "1000".to_owned());
        configs
            .dynamic_default
            .insert("log.segment.bytes".to_owned(), "3000000".to_owned());
        configs
            .dynamic_broker
            .insert("log.segment.bytes".to_owned(), "4000000".to_owned());
        let settings = BrokerSettings::resolve(&configs).expect("valid");
        assert_eq!(settings.topic_defaults.retention, Some(Duration::from_secs(1)));
        assert_eq!(settings.topic_defaults.segment_bytes, 4_000_000);
        assert_eq!(
            configs.topic_value(&Configs::new(), "segment.bytes").as_deref(),
            Some("4000000")
        );
    }

    #[test]
    fn values_that_cannot_stand_are_refused_by_name() {
        for (lines, reason) in [
            ("num.partitions=0", "num.partitions"),
            ("log.segment.bytes=5", "log.segment.bytes"),
            ("max.connections.per.ip.overrides=x", "max.connections.per.ip.overrides"),
            ("millstream.http.listeners=ftp://x", "millstream.http.listeners"),
            (
                "millstream.acks.durability=maybe",
                "String must be one of: fsync, replicated",
            ),
            ("log.retention.ms=0", "greater than or equal to 1"),
            ("controller.quorum.voters=2@h:1", "must have node 1"),
            ("process.roles=broker,king", "String must be one of: broker, controller"),
            (
                "listener.name.plaintext.max.connections=x",
                "listener.name.plaintext.max.connections",
            ),
            ("default.replication.factor=0", "default.replication.factor"),
        ] {
            let error = BrokerSettings::resolve(&configs(lines)).expect_err(lines).to_string();
            assert!(error.contains(reason), "{lines}: {error}");
        }
        let mut without = configs("");
        without.static_values.remove("process.roles");
        let error = BrokerSettings::resolve(&without).expect_err("no roles");
        assert_eq!(error, ConfigError::Missing("process.roles"));
    }

    #[test]
    fn dynamic_values_that_cannot_stand_are_left_out_one_by_one() {
        let mut configs = configs("");
        let mut set = |name: &str, value: &str| configs.dynamic_default.insert(name.to_owned(), value.to_owned());
        set("log.retention.ms", "7");
        set("log.segment.bytes", "soon");
        let (usable, dropped) = configs.usable();
        assert_eq!(dropped, ["log.segment.bytes"]);
        assert_eq!(usable.broker_value("log.retention.ms").as_deref(), Some("7"));
        assert_eq!(usable.broker_value("log.segment.bytes").as_deref(), Some("1073741824"));
        assert!(BrokerSettings::resolve(&usable).is_ok());
        assert_eq!(usable.usable(), (usable.clone(), Vec::new()));
    }

    #[test]
    fn broker_id_stands_for_node_id() {
        let mut older = configs("broker.id=7");
        older.static_values.remove("node.id");
        assert_eq!(
            BrokerSettings::resolve(&older).expect("valid").node_id,
            BrokerId::new(7)
        );
    }

    #[test]
    fn ip_overrides_take_both_families() {
        let settings = BrokerSettings::resolve(&configs("max.connections.per.ip.overrides=127.0.0.1:5, ::1:6"));
        let overrides = settings.expect("valid").connections.connections_per_ip_overrides;
        assert_eq!(overrides.get("::1"), Some(&6));
        assert_eq!(overrides.get("127.0.0.1"), Some(&5));
    }
}
