#!/usr/bin/env python3
"""Data directories change hands: from Apache Kafka 4.4.0 to us and back.

    exchange.py [--only CASE,...] [--keep]

Kafka writes everything that has a form of its own (keys, headers, four codecs, a cleaned topic, transactions, offsets of
groups, configurations), is stopped, and its directory imported. Our node must serve the same to Java's and librdkafka's
clients: every partition, offset, timestamp, key, value and header, every committed offset and configuration. The reverse
the same: what our node wrote, and what it had from Kafka, is served by Kafka from the exported directory. Producers go on
where they were. What cannot be taken over is refused, and nothing is changed then.
"""

import argparse
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS / "harness"))
sys.path.insert(0, str(TESTS / "bench"))
import server as harness  # noqa: E402

harness.use_venv()
import acknowledged  # noqa: E402
import compacted  # noqa: E402
from confluent_kafka import (  # noqa: E402
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient  # noqa: E402

PEERS = TESTS / "peers" / "kafka"
SECONDS_MAX = 300
CODECS = ["gzip", "snappy", "lz4", "zstd"]
SETTINGS = {**compacted.SETTINGS, "transaction.state.log.num.partitions": "4"}
GROUPS = "readers,exactly,modern"
TOPICS = {
    "plain": (3, {"retention.ms": "-1", "max.message.bytes": "2000000"}),
    "keyed": (2, {"retention.ms": "-1", "compression.type": "producer", "min.insync.replicas": "1"}),
    "rolled": (1, {"retention.ms": "-1", "segment.bytes": str(1 << 20)}),
    "stamped": (1, {"message.timestamp.type": "LogAppendTime"}),
    "compacted": (1, compacted.COMPACTED),
    "transacted": (1, {}),
}
UNFINISHED = "log.unfinished"


def check(expected, actual, what):
    if expected != actual:
        expected, actual = repr(expected)[:2000], repr(actual)[:2000]
        raise AssertionError(f"{what}: expected {expected}, got {actual}")


def same(expected, actual, what):
    """Two lists of lines; says where they part."""
    for number, (one, other) in enumerate(zip(expected, actual)):
        check(one, other, f"{what}, line {number}")
    check(len(expected), len(actual), f"{what}: lines")


# What is written.


def settings(server, **more):
    base = {"bootstrap.servers": server.bootstrap, "logger": acknowledged.quiet_logger()}
    return {**base, **{key.replace("_", "."): value for key, value in more.items()}}


def send(producer, topic, rows):
    """Rows of (partition, key, value, time, headers)."""
    errors = []
    for partition, key, value, time_ms, headers in rows:
        extra = {"timestamp": time_ms} if time_ms else {}
        producer.produce(topic, value, key, partition=partition, headers=headers, **extra,
                         on_delivery=lambda error, _: errors.append(str(error)) if error else None)
    check(0, producer.flush(60), "records left unsent")
    check([], errors, "errors of delivery")


def fill(server, transactions):
    """Everything. Returns an idempotent producer that is to go on later."""
    for topic, (partitions, configs) in TOPICS.items():
        acknowledged.create_topic(server.bootstrap, topic, partitions, configs)
    start = 1_700_000_000_000
    alive = Producer(settings(server, enable_idempotence=True, reconnect_backoff_max_ms=200))
    send(alive, "plain", [
        (number % 3, None if number % 5 else b"", f"value {number} \u00fc\U0001f30a".encode(), start + 7 * number,
         [("a", b"1"), ("\u00fc", None), ("a", b"\xff")] if number % 4 == 0 else None)
        for number in range(300)
    ])
    for codec in CODECS:
        producer = Producer(settings(server, compression_type=codec, linger_ms=50))
        send(producer, "keyed", [
            (number % 2, f"k{number % 9}", None if number % 11 == 3 else f"{codec} {'x' * number}", start + number, None)
            for number in range(200)
        ])
    producer = Producer(settings(server, enable_idempotence=True))
    send(producer, "rolled", [(0, str(number), os.urandom(25_000).hex(), start + number, None) for number in range(100)])
    admin = AdminClient(settings(server))
    for deleted in admin.delete_records([TopicPartition("rolled", 0, 7)]).values():
        deleted.result(60)
    send(producer, "stamped", [(0, None, b"by the log", start, None)] * 20)
    hour = compacted.HOUR_MS
    compacted.send(server, "compacted", [
        (f"k{number % 5}".encode(), f"version {number}".encode(), start + 2 * hour * (number // 20))
        for number in range(60)
    ] + [(b"k1", None, start + 6 * hour), (b"last", b"v", start + 8 * hour)])
    compacted.clean(server, "compacted")
    commit(server, "readers", [TopicPartition("plain", 1, 17, metadata='a "note"'), TopicPartition("keyed", 0, 3)])
    if transactions:
        commit(server, "modern", [TopicPartition("plain", 2, 5)], group_protocol="consumer")
        transact(server)
        only_kafka_knows(server)
    else:
        commit(server, "modern", [TopicPartition("plain", 2, 5)])
        commit(server, "exactly", [TopicPartition("plain", 0, 40)])
    return alive


def commit(server, group, offsets, **more):
    """As a member of the group."""
    consumer = Consumer(settings(server, group_id=group, auto_offset_reset="earliest", enable_auto_commit=False, **more))
    try:
        consumer.subscribe(sorted({offset.topic for offset in offsets}))
        check(True, bool(consumer.consume(10, timeout=60)), "records were read")
        consumer.commit(offsets=offsets, asynchronous=False)
    finally:
        consumer.close()


def transact(server):
    """Records and offsets of transactions, every second of them aborted."""
    consumer = Consumer(settings(server, group_id="exactly", enable_auto_commit=False))
    producer = Producer(settings(server, transactional_id="one", compression_type="zstd"))
    producer.init_transactions(60)
    for number in range(6):
        producer.begin_transaction()
        for row in range(5):
            producer.produce("transacted", f"{number} {row}", "k", partition=0)
        offsets = [TopicPartition("plain", 0, 10 * number)]
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), 60)
        producer.flush(60)
        producer.abort_transaction(60) if number % 2 else producer.commit_transaction(60)
    consumer.close()


def only_kafka_knows(server):
    """What our node has nothing for; it must keep it and say so."""
    for arguments in [
        ["--entity-type", "users", "--entity-name", "alice", "--add-config", "producer_byte_rate=1000000"],
        ["--entity-type", "users", "--entity-name", "alice", "--add-config",
         "SCRAM-SHA-256=[iterations=4096,password=secret]"],
        ["--entity-type", "client-metrics", "--entity-name", "metrics", "--add-config", "interval.ms=5000"],
        ["--entity-type", "brokers", "--entity-default", "--add-config", "log.retention.ms=172800000"],
    ]:
        tool("configs", "--bootstrap-server", server.bootstrap, "--alter", *arguments)


def tool(*arguments):
    ended = subprocess.run([PEERS / "tool", *arguments], capture_output=True, text=True, timeout=SECONDS_MAX)
    check(0, ended.returncode, f"{arguments}: {ended.stdout[-500:]}{ended.stderr[-500:]}")
    return ended.stdout


# What is served.


def java(server):
    """All that Java's clients see, a fact a line."""
    classes = f"{TESTS / '.cache' / 'java'}:{libraries()}/*"
    command = ["java", "-Xmx256M", "-XX:+UseSerialGC", f"-Dlog4j2.configurationFile={TESTS}/clients/java/log4j2.xml",
               "-Dstdout.encoding=UTF-8", "-cp", classes, "Contents", server.bootstrap, GROUPS, ",".join(TOPICS)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX)
    check(0, ended.returncode, f"Contents: {ended.stderr[-2000:]}\n{server.log_tail()}")
    return ended.stdout.splitlines()


def libraries():
    return subprocess.run([PEERS / "fetch"], capture_output=True, text=True, check=True).stdout.strip()


def librdkafka(server, isolation="read_uncommitted", topics=TOPICS):
    """Records and committed offsets as librdkafka sees them."""
    consumer = Consumer(settings(server, group_id="looks", enable_auto_commit=False, enable_partition_eof=True,
                                 isolation_level=isolation, check_crcs=True, auto_offset_reset="error"))
    wanted = [TopicPartition(topic, partition, OFFSET_BEGINNING)
              for topic in topics for partition in range(TOPICS[topic][0])]
    found, at_end = [], set()
    deadline = time.monotonic() + SECONDS_MAX
    try:
        consumer.assign(wanted)
        while len(at_end) < len(wanted):
            check(True, time.monotonic() < deadline, f"read to the end; {len(found)} records so far")
            for message in consumer.consume(10_000, 0.5):
                error = message.error()
                if error is None:
                    found.append((message.topic(), message.partition(), message.offset(), message.timestamp(),
                                  message.leader_epoch(), message.key(), message.value(), message.headers()))
                elif error.code() == KafkaError._PARTITION_EOF:
                    at_end.add((message.topic(), message.partition()))
                else:
                    raise KafkaException(error)
        ends = [(it.topic, it.partition, *consumer.get_watermark_offsets(it, 60)) for it in wanted]
    finally:
        consumer.close()
    offsets = []
    for group in GROUPS.split(","):
        reader = Consumer(settings(server, group_id=group))
        try:
            asked = [TopicPartition(topic, partition) for topic in TOPICS for partition in range(TOPICS[topic][0])]
            for one in reader.committed(asked, 60):
                offsets.append((group, one.topic, one.partition, one.offset, one.metadata))
        finally:
            reader.close()
    return sorted(found, key=lambda row: row[:3]) + ends + offsets


class Facts:
    """What a server serves, by both clients."""

    def __init__(self, server):
        self.java = java(server)
        self.librdkafka = librdkafka(server)

    def compare(self, server, what):
        same(self.java, java(server), f"{what}, Java")
        same(self.librdkafka, librdkafka(server), f"{what}, librdkafka")

    def check_worth(self):
        """Nothing in it is missing without which a comparison would say little."""
        count = {kind: sum(line.startswith(f"{kind}\t") for line in self.java) for kind in ("record", "offset", "config")}
        check(True, count["record"] > 1200 and count["offset"] >= 4 and count["config"] >= 8, f"facts: {count}")
        cleaned = [line for line in self.java if line.startswith("record\tcompacted\t")]
        check(True, len(cleaned) < 50, f"records of the cleaned topic: {len(cleaned)}")
        check(True, any("\trolled\t0\t7\t" in line for line in self.java if line.startswith("partition")), "the start")


def append(server, count=10):
    """A new idempotent producer writes on top, and a consumer reads it. Returns the rows that are read."""
    producer = Producer(settings(server, enable_idempotence=True))
    for topic, (partitions, _) in TOPICS.items():
        send(producer, topic, [(number % partitions, f"new{number}", f"by {server.name} {number}", None, None)
                               for number in range(count)])
    rows = [row for row in librdkafka(server) if len(row) == 8]
    new = [row for row in rows if row[6] is not None and row[6].startswith(f"by {server.name} ".encode())]
    check(count * len(TOPICS), len(new), "records written on top")


def producers(log_directory, folder):
    """(producer id, first sequence) of each batch with a producer, in order."""
    logs = sorted((log_directory / folder).glob("*.log"))
    _, out, _ = run("dump", *logs)
    found = re.findall(r"baseSequence: (-?\d+) .*?producerId: (-?\d+)", out)
    return [(int(producer), int(sequence)) for sequence, producer in found if int(producer) >= 0]


# Directories.


def run(*arguments):
    command = [str(harness.binary()), "log", *map(str, arguments)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX)
    return ended.returncode, ended.stdout, ended.stderr


def fingerprint(directory):
    """Names, sizes, times and contents of everything below."""
    found = {}
    for path in sorted(directory.rglob("*")):
        if path.is_file():
            found[str(path.relative_to(directory))] = (
                path.stat().st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest())
    return found


def partition_files(log_directory):
    """Every file of every partition with its content: segments, indexes, producers, epochs."""
    found = fingerprint(log_directory)
    # Our node has some files that Kafka does not know.
    others = (".deleted", ".bases", "leader-epoch-checkpoint.crc")
    return {name: content for name, (_, content) in found.items()
            if "/" in name and not name.startswith("__cluster_metadata-0/") and not name.endswith(others)}


def import_into(source, target, *more):
    """Imports and returns the notices' names."""
    before = fingerprint(source)
    code, out, errors = run("import", source, "--data-dir", target, "--output", "json", *more)
    check(0, code, f"import: {errors}")
    check(before, fingerprint(source), "the source stays as it is")
    check(partition_files(source), partition_files(target / "log"), "files of partitions")
    values = [json.loads(line) for line in out.splitlines()]
    return [value["notice"] for value in values if value["kind"] == "notice"], values[-1]


def verified(directory):
    code, out, errors = run("verify", "--records", "--quiet", directory)
    check((0, ""), (code, out), f"verify of {directory}: {errors}")


class Exported(harness.Kafka):
    """Kafka on a directory that `log export` made, started with the file that it wrote."""

    def __init__(self, directory, bootstrap):
        self.directory = pathlib.Path(directory)
        self.log_directory = self.directory / "log"
        self.log_file = self.directory / "server.log"
        self.script = PEERS / "broker"
        self.bootstrap = bootstrap

    def start(self):
        ended = subprocess.run([self.script, "run", str(self.directory)], capture_output=True, text=True)
        if ended.returncode:
            raise harness.ServerError(f"Kafka did not start: {ended.stderr}\n{self.log_tail()}")
        return self


class State:
    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.kafka = harness.make("kafka", self.directory / "kafka", SETTINGS)
        self.imported = harness.make("millstream", self.directory / "imported", SETTINGS)
        self.ours = harness.make("millstream", self.directory / "ours", SETTINGS)
        self.facts = None
        self.committed = None
        self.running = []

    def started(self, server):
        self.running.append(server)
        return server.start()


def kafka_to_ours(state):
    """(a): Kafka writes, our node serves the same, and producers go on."""
    kafka, ours = state.kafka, state.imported
    state.started(kafka)
    alive = fill(kafka, transactions=True)
    state.facts = Facts(kafka)
    state.facts.check_worth()
    state.committed = librdkafka(kafka, "read_committed", ["transacted"])
    kafka.stop()
    before = producers(kafka.log_directory, "plain-0")
    notices, summary = import_into(kafka.log_directory, ours.data_directory)
    check((1, 4 + 4 + sum(it[0] for it in TOPICS.values())), (summary["node_id"], summary["partitions"]), "summary")
    for notice in ("client-quotas", "scram-credentials", "consumer-groups", "transaction-state", "aborted-transactions",
                   "config-without-effect"):
        check(True, notice in notices, f"{notice} among {notices}")
    check(False, "stray" in notices or "folder-missing" in notices, f"folders are known: {notices}")
    verified(ours.data_directory)
    # The producer that is still alive finds our node at the same address.
    ours.port, ours.bootstrap = kafka.port, kafka.bootstrap
    state.started(ours)
    state.facts.compare(ours, "imported")
    send(alive, "plain", [(0, None, b"goes on", None, None)] * 3)
    append(ours)
    ours.stop()
    after = producers(ours.log_directory, "plain-0")
    check(before, after[:len(before)], "producers so far")
    went_on, new = after[len(before)], after[-1]
    last = [entry for entry in before if entry[0] == went_on[0]]
    check(True, bool(last) and went_on[1] > last[-1][1], f"the producer went on: {before[-1]}, {went_on}")
    known = {producer for folder in kafka.log_directory.iterdir() if folder.is_dir()
             for producer, _ in producers(kafka.log_directory, folder.name)}
    check(True, new[0] not in known, f"a new producer's id {new[0]} among {sorted(known)}")
    verified(ours.data_directory)


def there_and_back(state):
    """What came from Kafka goes back to it: its transactions and quotas are where they were."""
    ours = state.imported
    target = state.directory / "back"
    ours.start()
    facts = Facts(ours)
    ours.stop()
    code, out, errors = run("export", ours.data_directory, target)
    check(0, code, f"export: {out}{errors}")
    kafka = state.started(Exported(target, ours.bootstrap))
    facts.compare(kafka, "back at Kafka")
    committed = librdkafka(kafka, "read_committed", ["transacted"])
    new = [row for row in committed if len(row) != 8 or not row[6].startswith(b"by ")]
    same([row for row in state.committed if len(row) == 8], [row for row in new if len(row) == 8], "committed records")
    described = tool("configs", "--bootstrap-server", kafka.bootstrap, "--describe", "--entity-type", "users")
    for part in ("producer_byte_rate=1000000", "SCRAM-SHA-256"):
        check(True, part in described, f"{part} in {described}")
    producer = Producer(settings(kafka, transactional_id="one"))
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("transacted", b"once more", partition=0)
    producer.commit_transaction(60)
    values = [row[6] for row in librdkafka(kafka, "read_committed", ["transacted"]) if len(row) == 8]
    check(b"once more", values[-1], "the last committed record")
    append(kafka)
    kafka.stop()


def ours_to_kafka(state):
    """(b): our node writes, Kafka serves the same, and producers go on."""
    ours = state.started(state.ours)
    alive = fill(ours, transactions=False)
    facts = Facts(ours)
    facts.check_worth()
    ours.stop()
    before = fingerprint(ours.data_directory)
    target = state.directory / "exported"
    config = state.directory / "given.properties"
    config.write_text("millstream.acks.durability=replicated\nlog.retention.check.interval.ms=1000\nnode.id=1\n"
                      "process.roles=broker,controller\nlog.dirs=/elsewhere\n")
    code, out, errors = run("export", ours.data_directory, target, "--config", config, "--output", "json")
    check(0, code, f"export: {out}{errors}")
    check(before, fingerprint(ours.data_directory), "the source stays as it is")
    check(partition_files(ours.log_directory), partition_files(target / "log"), "files of partitions")
    own = [path for path in (target / "log").rglob("*") if path.suffix in (".bases", ".crc")]
    check([], own, "files that Kafka does not know")
    left_out = [value["what"] for value in map(json.loads, out.splitlines()) if value.get("notice") == "config-left-out"]
    check(1, len(left_out), f"keys left out: {left_out}")
    text = (target / "server.properties").read_text()
    check((True, False), ("log.retention.check.interval.ms=1000\n" in text, "millstream." in text), f"keys of {text}")
    kafka = state.started(Exported(target, ours.bootstrap))
    facts.compare(kafka, "exported")
    send(alive, "plain", [(0, None, b"goes on", None, None)] * 3)
    append(kafka)
    kafka.stop()
    log = (target / "server.log").read_text()
    check([], re.findall(r".*(?:Encountered fatal fault|Found .*corrupt).*", log), "faults")
    # What Kafka has left can be had back, and the new segments of our node leave the linked ones alone.
    again = harness.make("millstream", state.directory / "again", SETTINGS)
    import_into(target / "log", again.data_directory, "--link")
    shared = [path for path in again.log_directory.rglob("*.log") if path.stat().st_nlink == 2]
    check(True, any(path.parent.name == "rolled-0" for path in shared), f"shared segments: {shared}")
    before = fingerprint(target / "log")
    state.started(again)
    append(again)
    again.stop()
    check(before, fingerprint(target / "log"), "the source of linked segments")


def refusals(state):
    """Nothing is made, and nothing changed, of what cannot be taken over."""
    source = state.directory / "refused"
    target = state.directory / "nothing"

    def refused(words, change=None, of=state.kafka.log_directory, into=target, verb="import"):
        shutil.rmtree(source, ignore_errors=True)
        shutil.copytree(of, source)
        if change:
            change(source)
        before = fingerprint(source)
        arguments = [source, "--data-dir", into] if verb == "import" else [source, into]
        code, out, errors = run(verb, *arguments)
        check((1, ""), (code, out), f"exit code for {words}: {errors}")
        check(True, words in errors, f"{words!r} in {errors!r}")
        check(before, fingerprint(source), f"the source, {words}")
        check(False, target.exists(), f"a target, {words}")

    def damage(name, text):
        return lambda directory: (directory / name).write_text(text)

    refused("not stopped in good order", lambda directory: (directory / ".kafka_cleanshutdown").unlink())
    refused("meta.properties", damage("meta.properties", "version=1\nnode.id=x\ncluster.id=c\n"))
    refused("not formatted", lambda directory: (directory / "meta.properties").unlink())
    refused("--metadata-dir", lambda directory: shutil.rmtree(directory / "__cluster_metadata-0"))
    refused("recovery-point-offset-checkpoint", damage("recovery-point-offset-checkpoint", "7\n"))

    def flip(directory):
        log = sorted((directory / "__cluster_metadata-0").glob("*.log"))[0]
        data = bytearray(log.read_bytes())
        data[300] ^= 1
        log.write_bytes(data)

    refused("metadata log", flip)
    # A directory with something in it is left alone.
    taken = state.directory / "taken"
    taken.mkdir()
    (taken / "mine").write_text("x")
    refused("is not empty: it holds mine", into=taken)
    # In use, by Kafka and by us.
    running = state.started(harness.make("kafka", state.directory / "running", SETTINGS))
    code, _, errors = run("import", running.log_directory, "--data-dir", target)
    check((1, True), (code, "in use by a running node" in errors), f"a running source: {errors}")
    running.kill()
    code, _, errors = run("import", running.log_directory, "--data-dir", target)
    check((1, True), (code, "not stopped in good order" in errors), f"a source that was killed: {errors}")
    ours = state.started(state.ours)
    code, _, errors = run("export", ours.data_directory, target)
    check((1, True), (code, "in use by a running node" in errors), f"a running node of ours: {errors}")
    ours.stop()
    check(False, target.exists(), "a target")


def broker_of_a_cluster(state):
    """A node that is only a broker of other controllers is refused, and so is the controller without its brokers."""
    directory = state.directory / "cluster"
    controller, broker = directory / "controller", directory / "broker"
    one, two = harness.free_ports(2)
    common = f"controller.quorum.bootstrap.servers=127.0.0.1:{one}\ncontroller.listener.names=CONTROLLER\n" \
             "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT\n" \
             "offsets.topic.replication.factor=1\n"
    for path, roles, listener in [
        (controller, "process.roles=controller\nnode.id=1\n", f"listeners=CONTROLLER://127.0.0.1:{one}\n"),
        (broker, "process.roles=broker\nnode.id=2\n", f"listeners=PLAINTEXT://127.0.0.1:{two}\n"),
    ]:
        path.mkdir(parents=True)
        (path / "server.properties").write_text(f"{roles}{listener}{common}log.dirs={path / 'log'}\n")
        more = ["--standalone"] if path == controller else []
        tool("storage", "format", *more, "--cluster-id", "4L6g3nShT-eMCtK--X86sw", "--config",
             str(path / "server.properties"))
    leader = state.started(Exported(controller, f"127.0.0.1:{one}"))
    follower = state.started(Exported(broker, f"127.0.0.1:{two}"))
    acknowledged.create_topic(follower.bootstrap, "t", 1)
    follower.stop()
    leader.stop()
    target = state.directory / "no-broker"
    code, _, errors = run("import", broker / "log", "--data-dir", target)
    check((1, True), (code, "whose controllers are 1" in errors), f"a broker: {errors}")
    code, _, errors = run("import", controller / "log", "--data-dir", target)
    check((1, True), (code, "never registered as a broker" in errors), f"a controller: {errors}")
    check(False, target.exists(), "a target")


def older_formats(state):
    """Voters in the configuration, the metadata log in a directory of its own, an older metadata.version."""
    directory = state.directory / "older"
    directory.mkdir()
    port, controller = harness.free_ports(2)
    (directory / "server.properties").write_text(
        f"process.roles=broker,controller\nnode.id=7\ncontroller.quorum.voters=7@127.0.0.1:{controller}\n"
        f"listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n"
        f"advertised.listeners=PLAINTEXT://127.0.0.1:{port}\ncontroller.listener.names=CONTROLLER\n"
        "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT\noffsets.topic.replication.factor=1\n"
        f"offsets.topic.num.partitions=4\nlog.dirs={directory / 'log'}\nmetadata.log.dir={directory / 'metadata'}\n")
    tool("storage", "format", "--release-version", "4.0-IV3", "--cluster-id", "4L6g3nShT-eMCtK--X86sw", "--config",
         str(directory / "server.properties"))
    kafka = state.started(Exported(directory, f"127.0.0.1:{port}"))
    acknowledged.create_topic(kafka.bootstrap, "plain", 3)
    send(Producer(settings(kafka)), "plain", [(number % 3, None, str(number), None, None) for number in range(30)])
    rows = compacted.read(kafka, "plain")
    kafka.stop()
    ours = harness.make("millstream", state.directory / "seven", {**SETTINGS, "node.id": "7"})
    notices, _ = import_into(directory / "log", ours.data_directory, "--metadata-dir", directory / "metadata")
    check(True, "voters-into-log" in notices, f"notices: {notices}")
    state.started(ours)
    check(rows, compacted.read(ours, "plain"), "records")
    acknowledged.create_topic(ours.bootstrap, "later", 1)
    ours.stop()
    back = state.directory / "seven-back"
    code, out, errors = run("export", ours.data_directory, back)
    check(0, code, f"export: {out}{errors}")
    kafka = state.started(Exported(back, ours.bootstrap))
    check(rows, compacted.read(kafka, "plain"), "records, back")
    kafka.stop()


def cut_short(state):
    """An import that is killed leaves nothing that starts, and a second one completes."""
    node = harness.make("millstream", state.directory / "cut", SETTINGS)
    source = state.kafka.log_directory
    command = [str(harness.binary()), "log", "import", str(source), "--data-dir", str(node.data_directory)]
    unfinished = node.data_directory / UNFINISHED
    caught = False
    for _ in range(20):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and not unfinished.exists():
            pass
        process.kill()
        process.wait()
        if unfinished.exists():
            caught = True
            break
        shutil.rmtree(node.data_directory, ignore_errors=True)
    check(True, caught, "an import was caught on its way")
    check(False, node.log_directory.exists(), "a log directory")
    try:
        node.start()
        raise AssertionError("a node started beside an import that had not ended")
    except harness.ServerError as error:
        check(True, "did not come to its end" in str(error), f"the reason in {error}")
    import_into(source, node.data_directory)
    check(False, unfinished.exists(), "what was left")
    state.started(node)
    state.facts.compare(node, "imported at the second attempt")
    node.stop()


CASES = [kafka_to_ours, there_and_back, ours_to_kafka, refusals, cut_short, broker_of_a_cluster, older_formats]
# What others begin from.
NEEDS = {there_and_back: [kafka_to_ours], refusals: [kafka_to_ours], cut_short: [kafka_to_ours]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--only", default="", help="names of cases, separated by commas")
    parser.add_argument("--keep", action="store_true", help="leave the directories for a look")
    options = parser.parse_args()
    names = [case.__name__ for case in CASES]
    wanted = options.only.split(",") if options.only else names
    if unknown := [name for name in wanted if name not in names]:
        parser.error(f"there is no case {', '.join(unknown)}; there are {', '.join(names)}")
    chosen = [case for case in CASES if case.__name__ in wanted]
    needed = {need for case in chosen for need in NEEDS.get(case, [])}
    cases = [case for case in CASES if case in chosen or case in needed]
    subprocess.run([TESTS / "setup", "java"], check=True)
    directory = tempfile.mkdtemp(prefix="millstream-exchange-")
    state = State(directory)
    passed = 0
    try:
        for case in cases:
            case(state)
            passed += 1
            print(f"ok {case.__name__}", flush=True)
    except (AssertionError, KafkaException, OSError, harness.ServerError, subprocess.SubprocessError):
        print(f"FAILED {cases[min(passed, len(cases) - 1)].__name__}: {traceback.format_exc().strip()}")
    finally:
        for server in state.running:
            if isinstance(server, harness.Millstream) or (server.directory / "pid").exists():
                server.kill()
        if options.keep:
            print(f"kept {directory}")
        else:
            shutil.rmtree(directory, ignore_errors=True)
    failed = len(cases) - passed
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
