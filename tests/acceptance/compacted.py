"""What the checks of compaction share: when a log is clean, what is left in it, the same files under another server.

Segments end where a test says so: topics have `segment.ms` of an hour, and a record whose time is two hours after the
one before begins a new segment, on Kafka and on Millstream. Nothing is cleaned before `clean` says so, since a dirty
share of more than 1 does not exist.
"""

import pathlib
import re
import shutil
import subprocess
import time

import acknowledged
import measure
import server as harness
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    ResourceType,
)

TOOL = pathlib.Path(__file__).resolve().parent.parent / "peers" / "kafka" / "tool"
CHECKPOINT = "cleaner-offset-checkpoint"
RATIO = "min.cleanable.dirty.ratio"
HOUR_MS = 3_600_000
CLEAN_SECONDS_MAX = 600
READ_SECONDS_MAX = 300
# The cleaner looks often; everything else is as it comes.
SETTINGS = {
    "log.cleaner.backoff.ms": "50",
    "log.cleaner.dedupe.buffer.size": str(128 << 20),
    "auto.create.topics.enable": "false",
}
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": str(HOUR_MS),
    "segment.jitter.ms": "0",
    RATIO: "1.0",
    "message.timestamp.type": "CreateTime",
}
# Threads of the cleaner as /proc names them; a JVM cuts those that are too long, at the end or in the middle.
THREADS = {"millstream": re.compile(r"cleaner-\d+"), "kafka": re.compile(r"kafka-log-clean|kafka-l\.\.read-\d+")}


def create(server, topic, configs=None):
    """A compacted topic of one partition."""
    acknowledged.create_topic(server.bootstrap, topic, 1, {**COMPACTED, **(configs or {})})


def alter(server, topic, name, value):
    admin = AdminClient({"bootstrap.servers": server.bootstrap, "logger": acknowledged.quiet_logger()})
    change = ConfigEntry(
        name, value, source=ConfigSource.DYNAMIC_TOPIC_CONFIG, incremental_operation=AlterConfigOpType.SET
    )
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[change])
    admin.incremental_alter_configs([resource])[resource].result(60)


def folder(server, topic, partition=0):
    return server.log_directory / f"{topic}-{partition}"


def segments(server, topic, partition=0):
    """Base offset → size, of the segments that are in use."""
    return {int(log.stem): log.stat().st_size for log in sorted(folder(server, topic, partition).glob("*.log"))}


def size(server, topic, partition=0):
    return sum(segments(server, topic, partition).values())


def cleaned_to(server, topic, partition=0):
    """Up to where the server's checkpoint says that the log is clean."""
    try:
        lines = (server.log_directory / CHECKPOINT).read_text().splitlines()
    except FileNotFoundError:
        return 0
    found = [line.split() for line in lines[2:]]
    return next((int(row[2]) for row in found if row[:2] == [topic, str(partition)]), 0)


def await_clean(server, topic, partition=0):
    """Waits until everything but the active segment is clean; a server that ends meanwhile is an error."""

    def is_clean():
        active = max(segments(server, topic, partition))
        return cleaned_to(server, topic, partition) >= active

    try:
        harness.wait_for(is_clean, f"{server.name} has cleaned {topic}", CLEAN_SECONDS_MAX)
    except harness.ServerError as error:
        raise harness.ServerError(f"{error}\n{server.log_tail()}") from None


def clean(server, topic):
    """Has the topic cleaned; it is left alone again afterwards."""
    alter(server, topic, RATIO, "0.0001")
    await_clean(server, topic)
    alter(server, topic, RATIO, "1.0")


def producer(server, **options):
    return Producer(
        {
            "bootstrap.servers": server.bootstrap,
            "acks": "all",
            "linger.ms": 0,
            "logger": acknowledged.quiet_logger(),
            **{name.replace("_", "."): value for name, value in options.items()},
        }
    )


def send(server, topic, rows, **options):
    """Rows of (key, value, time[, headers]), each in a batch of its own."""
    sender = producer(server, **options)
    for key, value, time_ms, *headers in rows:
        produce(sender, topic, key, value, time_ms, *headers)
        flush(sender)


def produce(sender, topic, key, value, time_ms, headers=None):
    while True:
        try:
            sender.produce(
                topic, value, key, partition=0, timestamp=time_ms, headers=headers or [], on_delivery=delivered
            )
            return
        except BufferError:
            sender.poll(0.1)


def delivered(error, _message):
    """What is raised here comes out of the next `flush` or `poll`."""
    if error is not None:
        raise KafkaException(error)


def flush(sender):
    if sender.flush(60):
        raise AssertionError("records are left unsent")


def read(server, topic, start=OFFSET_BEGINNING, isolation="read_committed", limit=None):
    """All records from an offset on, up to the end: (offset, key, value, headers, time)."""
    consumer = Consumer(
        {
            "bootstrap.servers": server.bootstrap,
            "group.id": "reads-what-is-left",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation,
            "check.crcs": True,
            "auto.offset.reset": "error",
            "logger": acknowledged.quiet_logger(),
        }
    )
    consumer.assign([TopicPartition(topic, 0, start)])
    found = []
    deadline = time.monotonic() + READ_SECONDS_MAX
    try:
        while limit is None or len(found) < limit:
            if time.monotonic() > deadline:
                raise AssertionError(f"{topic} was not read to its end within {READ_SECONDS_MAX} s")
            for message in consumer.consume(10_000, 0.2):
                error = message.error()
                if error is None:
                    record = (message.offset(), message.key(), message.value(), message.headers(), message.timestamp())
                    found.append(record)
                elif error.code() == KafkaError._PARTITION_EOF:
                    return found
                else:
                    raise KafkaException(error)
    finally:
        consumer.close()
    return found[:limit]


def ends(server, topic):
    consumer = Consumer(
        {"bootstrap.servers": server.bootstrap, "group.id": "asks", "logger": acknowledged.quiet_logger()}
    )
    try:
        return consumer.get_watermark_offsets(TopicPartition(topic, 0), 60)
    finally:
        consumer.close()


def transplant(source, target, topic):
    """Gives a topic of a stopped server the segments of another's: its folder keeps nothing but whose it is."""
    of_target = folder(target, topic)
    for path in of_target.iterdir():
        if path.name != "partition.metadata":
            path.unlink()
    for path in source.iterdir():
        if path.name != "partition.metadata" and path.suffix != ".deleted":
            shutil.copy(path, of_target)


def dump(server, topic, partition=0, *more):
    """What Kafka's tool says of each batch and record of the segments; it must find all of them valid."""
    logs = sorted(str(path) for path in folder(server, topic, partition).glob("*.log"))
    command = [TOOL, "dump-log", "--deep-iteration", "--print-data-log", *more, "--files", ",".join(logs)]
    ended = subprocess.run(command, capture_output=True, text=True)
    batches = re.findall(r"isvalid: (\w+)", ended.stdout)
    if ended.returncode or "false" in batches or not batches:
        raise AssertionError(f"dump-log ended with {ended.returncode}: {set(batches)}\n{ended.stderr}")
    return ended.stdout


def thread_seconds(server):
    """CPU seconds of the cleaner's threads so far."""
    ticks = 0
    for task in pathlib.Path(f"/proc/{server.process_id()}/task").iterdir():
        try:
            stat = (task / "stat").read_text()
        except FileNotFoundError:
            continue
        head, fields = stat.rsplit(")", 1)
        if THREADS[server.name].fullmatch(head.split("(", 1)[1]):
            user, system = fields.split()[11:13]
            ticks += int(user) + int(system)
    return ticks / measure.TICKS_PER_SECOND
