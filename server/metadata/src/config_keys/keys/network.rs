//! Broker keys of listeners, connections and requests.

use super::super::check::Check;
use super::super::definition::{KeyDefinition, int, list, long, string};

pub(super) const KEYS: &[KeyDefinition] = &[
    list("advertised.listeners")
        .check(Check::SomeEntries)
        .high()
        .in_effect()
        .doc("The addresses given to clients and other brokers, where they differ from the listeners."),
    long("connections.max.idle.ms")
        .default("600000")
        .in_effect()
        .doc("How long a connection may say nothing before it is closed."),
    int("delete.records.purgatory.purge.interval.requests")
        .default("1")
        .no_meaning()
        .doc("After how many requests finished waits of DeleteRecords are dropped."),
    list("early.start.listeners")
        .check(Check::Entries)
        .high()
        .in_effect()
        .doc("Listeners that open before the authorizer is ready."),
    int("fetch.max.bytes")
        .default("57671680")
        .at_least(1024)
        .in_effect()
        .doc("The most bytes of one Fetch answer."),
    int("fetch.purgatory.purge.interval.requests")
        .default("1000")
        .no_meaning()
        .doc("After how many requests finished waits of Fetch are dropped."),
    string("inter.broker.listener.name")
        .in_effect()
        .doc("The listener by which brokers speak to each other."),
    string("listener.security.protocol.map")
        .default("SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT")
        .low()
        .per_broker()
        .in_effect()
        .doc("Which protocol each listener speaks, as NAME:PROTOCOL."),
    list("listeners")
        .default("PLAINTEXT://:9092")
        .check(Check::SomeEntries)
        .high()
        .per_broker()
        .in_effect()
        .doc("The sockets to open, as NAME://host:port."),
    int("max.connection.creation.rate")
        .default("2147483647")
        .at_least(0)
        .cluster_wide()
        .in_effect()
        .doc("New connections a second."),
    int("max.connections")
        .default("2147483647")
        .at_least(0)
        .cluster_wide()
        .in_effect()
        .doc("Connections at a time."),
    int("max.connections.per.ip")
        .default("2147483647")
        .at_least(0)
        .cluster_wide()
        .in_effect()
        .doc("Connections at a time from one address."),
    string("max.connections.per.ip.overrides")
        .default("")
        .cluster_wide()
        .in_effect()
        .doc("Other limits for some addresses, as host:count."),
    int("max.incremental.fetch.session.cache.slots")
        .default("1000")
        .at_least(0)
        .in_effect()
        .doc("How many incremental fetch sessions are kept."),
    int("max.request.partition.size.limit")
        .default("2000")
        .at_least(1)
        .in_effect()
        .doc("The most partitions of one request or answer of a description."),
    int("num.io.threads")
        .default("8")
        .at_least(1)
        .high()
        .cluster_wide()
        .no_meaning()
        .doc("How many threads handle requests in Kafka."),
    int("num.network.threads")
        .default("3")
        .at_least(1)
        .high()
        .cluster_wide()
        .no_meaning()
        .doc("How many threads serve sockets in Kafka."),
    int("producer.purgatory.purge.interval.requests")
        .default("1000")
        .no_meaning()
        .doc("After how many requests finished waits of Produce are dropped."),
    long("queued.max.request.bytes")
        .default("-1")
        .doc("The most bytes of requests that wait; -1 for no limit."),
    int("queued.max.requests")
        .default("500")
        .at_least(1)
        .high()
        .in_effect()
        .doc("The most requests that wait before sockets are no longer read."),
    int("request.timeout.ms")
        .default("30000")
        .high()
        .in_effect()
        .doc("How long a request between nodes may take."),
    int("share.fetch.purgatory.purge.interval.requests")
        .default("1000")
        .no_meaning()
        .doc("After how many requests finished waits of ShareFetch are dropped."),
    long("socket.connection.setup.timeout.max.ms")
        .default("30000")
        .doc("The longest time for opening a connection to another node."),
    long("socket.connection.setup.timeout.ms")
        .default("10000")
        .doc("The first time limit for opening a connection to another node."),
    int("socket.listen.backlog.size")
        .default("50")
        .at_least(1)
        .in_effect()
        .doc("How many connections may wait to be accepted."),
    int("socket.receive.buffer.bytes")
        .default("102400")
        .high()
        .in_effect()
        .doc("The receive buffer of a socket; -1 leaves it to the system."),
    int("socket.request.max.bytes")
        .default("104857600")
        .at_least(1)
        .high()
        .in_effect()
        .doc("The largest request that is read."),
    int("socket.send.buffer.bytes")
        .default("102400")
        .high()
        .in_effect()
        .doc("The send buffer of a socket; -1 leaves it to the system."),
];
