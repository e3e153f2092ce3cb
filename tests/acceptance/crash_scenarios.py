"""What a node is doing when crash-sweep.py kills it, and what must be so afterwards.

A scenario has a topic of small segments, prepares records in it, and then does one thing that makes the log write,
roll, delete, compact or record. An idempotent producer sends batches of unique values, a few under way at a time.
After a crash it sends again what was not answered, and then: each acknowledged record is at its offset, nothing else
is there, no value twice, and what is missing is what the scenario allows to be deleted.
"""

import collections
import dataclasses
import pathlib
import signal
import typing

import server as harness
import wire

TOPIC = "sweep"
PARTITIONS = 2
SEGMENT_BYTES = 1500
UNDER_WAY_MAX = 3
RECORDS_PER_BATCH_MAX = 3
VALUE_BYTES_MAX = 300
KEYS = 8
RETAINED_BYTES = 4000
WAIT_SECONDS = 60
OFFSET_OUT_OF_RANGE = 1
UNKNOWN_TOPIC = 3
# The node has just started: no leader yet, topic or partition not known yet, no coordinator yet.
NOT_YET = (3, 5, 6, 7, 14, 15, 16, 41)
PASSING_SUFFIXES = (".deleted", ".swap", ".cleaned")


@dataclasses.dataclass
class Sent:
    """A batch that is not answered yet, or the last one of its partition that was."""

    partition: int
    records: list
    encoded: bytes
    base_offset: int = -1


class Work:
    """What was sent and acknowledged. A copy goes with a copy of the data directory."""

    def __init__(self, dice):
        self.dice = dice
        self.producer_id = None
        self.sequences = [0] * PARTITIONS
        self.next_value = 0
        # Per partition: offset → (key, value).
        self.acknowledged = [{} for _ in range(PARTITIONS)]
        self.last = [None] * PARTITIONS
        self.pending = collections.deque()
        # Below it records may have been deleted by request.
        self.deleted_below = [0] * PARTITIONS
        self.topics_made = set()
        self.topics_deleted = set()

    def send(self, connection, count):
        """Sends so many batches, and waits until all are answered."""
        for _ in range(count):
            self.pending.append(self._batch())
            sent = self.pending[-1]
            connection.send(TOPIC, sent.partition, sent.encoded)
            if len(self.pending) > self.dice.randint(0, UNDER_WAY_MAX - 1):
                self._receive(connection)
        while self.pending:
            self._receive(connection)

    def send_again(self, connection):
        """What was not answered, in its order; then each partition's last batch, which must be known as a duplicate."""
        while self.pending:
            sent = self.pending[0]
            base_offset = when_ready(lambda: connection.produce(TOPIC, sent.partition, sent.encoded))
            self._acknowledged(base_offset)
        wrong = []
        for sent in filter(None, self.last):
            again = when_ready(lambda: connection.produce(TOPIC, sent.partition, sent.encoded))
            if again != sent.base_offset:
                wrong.append(f"partition {sent.partition}: the batch at {sent.base_offset} is also at {again}")
        return wrong

    def end(self, partition):
        """The offset after the last acknowledged one."""
        return max(self.acknowledged[partition], default=-1) + 1

    def _batch(self):
        partition = self.dice.randrange(PARTITIONS)
        records = []
        for _ in range(self.dice.randint(1, RECORDS_PER_BATCH_MAX)):
            key = f"{self.dice.randrange(KEYS)}".encode()
            records.append((key, f"{self.next_value}".encode().ljust(self.dice.randint(10, VALUE_BYTES_MAX), b".")))
            self.next_value += 1
        encoded = wire.batch_of(records, (self.producer_id, 0, self.sequences[partition]))
        self.sequences[partition] += len(records)
        return Sent(partition, records, encoded)

    def _receive(self, connection):
        self._acknowledged(connection.receive(TOPIC))

    def _acknowledged(self, base_offset):
        sent = self.pending.popleft()
        sent.base_offset = base_offset
        self.last[sent.partition] = sent
        for number, record in enumerate(sent.records):
            known = self.acknowledged[sent.partition].setdefault(base_offset + number, record)
            if known != record:
                raise OffsetReused(f"partition {sent.partition}: offset {base_offset + number} was given twice")


class OffsetReused(Exception):
    """Two acknowledged records at one offset."""


def when_ready(ask):
    """The answer, once a node that has just started has taken up its partitions."""
    answers = []

    def answered():
        try:
            answers.append(ask())
        except wire.Refused as refused:
            if refused.code not in NOT_YET:
                raise
        return bool(answers)

    harness.wait_for(answered, "the node takes up its partitions", WAIT_SECONDS)
    return answers[0]


@dataclasses.dataclass
class Round:
    """A running node, its work, and one connection to it."""

    server: typing.Any
    work: Work
    connection: typing.Any

    def folder(self, partition):
        return self.server.log_directory / f"{TOPIC}-{partition}"

    def segments(self, partition):
        return sorted(int(name.stem) for name in self.folder(partition).glob("*.log"))

    def checkpoint(self, name):
        """Partition → offset, of this topic."""
        lines = [line.split() for line in read_text(self.server.log_directory / name).splitlines()[2:]]
        return {int(words[1]): int(words[2]) for words in lines if words[0] == TOPIC}

    def wait(self, holds, what):
        """As long as the node lives."""

        def now():
            if self.server.process.poll() is not None:
                raise ConnectionResetError("the node has ended")
            return holds()

        harness.wait_for(now, what, WAIT_SECONDS)


def read_text(path):
    try:
        return path.read_text()
    except FileNotFoundError:
        return ""


@dataclasses.dataclass
class Scenario:
    """`act` runs on a node that strace watches; the node may end under it at any call."""

    name: str
    act: typing.Callable
    settings: dict = dataclasses.field(default_factory=dict)
    configs: dict = dataclasses.field(default_factory=dict)
    prepared_batches: int = 20
    # What is kept at least of a partition, in bytes, where old segments are deleted.
    kept_bytes: typing.Optional[int] = None
    compacted: bool = False
    # The node is killed after the preparation, and `act` is its start.
    starts: bool = False


# Nothing is done that a scenario has not asked for.
SETTINGS = {
    "log.initial.task.delay.ms": "0",
    "log.retention.check.interval.ms": "3600000",
    "log.flush.offset.checkpoint.interval.ms": "3600000",
    "log.cleaner.enable": "false",
    "metadata.max.idle.interval.ms": "0",
}
SMALL = {
    "internal.segment.bytes": str(SEGMENT_BYTES),
    "index.interval.bytes": "200",
    "file.delete.delay.ms": "50",
}


def append(round):
    round.work.send(round.connection, 50)


def retention(round):
    round.work.send(round.connection, 50)

    def deleted():
        files = [file for partition in range(PARTITIONS) for file in round.folder(partition).iterdir()]
        is_gone = not any(file.name.endswith(".deleted") for file in files)
        sizes = [
            sum(file.stat().st_size for file in round.folder(partition).glob("*.log"))
            for partition in range(PARTITIONS)
        ]
        return is_gone and max(sizes) < RETAINED_BYTES + 3 * SEGMENT_BYTES

    def holds():
        try:
            return deleted()
        except FileNotFoundError:
            return False

    round.wait(holds, "old segments are deleted")


def compaction(round):
    for _ in range(2):
        round.work.send(round.connection, 25)

        def cleaned():
            at = round.checkpoint("cleaner-offset-checkpoint")
            if any(at.get(partition, -1) < round.segments(partition)[-1] for partition in range(PARTITIONS)):
                return False
            files = [file.name for partition in range(PARTITIONS) for file in round.folder(partition).iterdir()]
            return not any(name.endswith(PASSING_SUFFIXES) for name in files)

        round.wait(cleaned, "the log is cleaned up to its active segment")


def checkpoint(round):
    for _ in range(3):
        round.work.send(round.connection, 6)
        ends = {partition: round.work.end(partition) for partition in range(PARTITIONS)}
        for partition, end in ends.items():
            below = end - 2
            round.work.deleted_below[partition] = below
            round.connection.delete_records(TOPIC, partition, below)

        def recorded():
            starts = round.checkpoint("log-start-offset-checkpoint")
            return round.checkpoint("recovery-point-offset-checkpoint") == ends and all(
                starts.get(partition, 0) == end - 2 for partition, end in ends.items()
            )

        round.wait(recorded, "the checkpoints say what is so")


def shutdown(round):
    round.work.send(round.connection, 20)
    process = round.server.process
    process.send_signal(signal.SIGTERM)
    code = process.wait(WAIT_SECONDS)
    if code not in (0, -signal.SIGKILL):
        raise RuntimeError(f"the node ended with {code}")


def topics(round):
    """Topics come and go while records are appended to another; the metadata log rolls and makes snapshots."""
    for number in range(3):
        made, kept = f"made-{number}", f"kept-{number}"
        round.connection.create_topic(made, 2)
        round.work.topics_made.add(made)
        when_ready(lambda: round.connection.produce(made, 0, wire.batch(b"anything")))
        round.work.send(round.connection, 5)
        round.work.topics_made.remove(made)
        round.connection.delete_topic(made)
        round.work.topics_deleted.add(made)
        round.connection.create_topic(kept, 1)
        round.work.topics_made.add(kept)
        round.work.send(round.connection, 5)
        round.wait(lambda: not list(round.server.log_directory.glob(f"{made}*")), "the topic's folders are removed")


def start(round):
    """Nothing more: the node has started."""


SCENARIOS = [
    Scenario("append", append),
    Scenario("roll", append, configs=SMALL),
    Scenario(
        "retention",
        retention,
        settings={"log.retention.check.interval.ms": "100"},
        configs={**SMALL, "retention.bytes": str(RETAINED_BYTES)},
        kept_bytes=RETAINED_BYTES,
    ),
    Scenario(
        "compaction",
        compaction,
        settings={
            "log.cleaner.enable": "true",
            "log.cleaner.backoff.ms": "100",
            "log.cleaner.dedupe.buffer.size": "4194304",
            "log.retention.check.interval.ms": "100",
        },
        configs={**SMALL, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"},
        compacted=True,
    ),
    Scenario(
        "checkpoint",
        checkpoint,
        settings={"log.flush.offset.checkpoint.interval.ms": "100"},
        configs={"internal.segment.bytes": str(SEGMENT_BYTES * 4)},
    ),
    Scenario("shutdown", shutdown, configs=SMALL),
    Scenario(
        "topics",
        topics,
        settings={
            "log.segment.delete.delay.ms": "50",
            "log.retention.check.interval.ms": "100",
            "internal.metadata.log.segment.bytes": "1000",
            "metadata.log.max.record.bytes.between.snapshots": "500",
            "metadata.max.retention.bytes": "1500",
        },
    ),
    Scenario("start", start, configs=SMALL, prepared_batches=60, starts=True),
]


def read_all(connection, partition):
    """The batches from the log's start to its high watermark, with these two."""
    start = when_ready(lambda: connection.offset(TOPIC, partition, wire.EARLIEST))
    while True:
        try:
            return start, *_read_from(connection, partition, start)
        except wire.Refused as refused:
            # Retention may have been at work meanwhile.
            moved = connection.offset(TOPIC, partition, wire.EARLIEST)
            if refused.code != OFFSET_OUT_OF_RANGE or moved <= start:
                raise
            start = moved


def _read_from(connection, partition, at):
    end = connection.offset(TOPIC, partition, wire.LATEST)
    found = []
    while at < end:
        read = list(wire.batches(connection.fetch(TOPIC, partition, at)))
        if not read or read[-1].last_offset < at:
            raise ValueError(f"partition {partition}: reading ends at {at}, the log at {end}")
        found += read
        at = read[-1].last_offset + 1
    return end, found


def differences(scenario, work, connection):
    """What is wrong with the topic as it can be read. Nothing may be under way."""
    wrong = []
    places = {}
    for partition in range(PARTITIONS):
        start, end, found = read_all(connection, partition)
        acknowledged = work.acknowledged[partition]
        records = {}
        last = -1
        for batch in found:
            for offset, key, value in batch.records:
                if offset <= last:
                    wrong.append(f"partition {partition}: offset {offset} after {last}")
                last = offset
                if offset >= start:
                    records[offset] = (key, value)
                if value in places:
                    wrong.append(f"value {name(value)} is at {places[value]} and at {(partition, offset)}")
                places[value] = (partition, offset)
        for offset, record in records.items():
            if acknowledged.get(offset) != record:
                known = acknowledged.get(offset, (b"", b"nothing"))[1]
                wrong.append(f"partition {partition}: {name(record[1])} at {offset}, where {name(known)} was written")
        wrong += [f"partition {partition}: {line}" for line in lost(scenario, acknowledged, records, start)]
        if end != work.end(partition):
            wrong.append(f"partition {partition}: the log ends at {end}, {work.end(partition)} was acknowledged")
        kept_bytes = sum(batch.size_bytes for batch in found)
        if scenario.kept_bytes is not None and start > 0 and kept_bytes < scenario.kept_bytes:
            wrong.append(f"partition {partition}: {kept_bytes} bytes are left, retention keeps {scenario.kept_bytes}")
        deleted_below = work.deleted_below[partition]
        if scenario.kept_bytes is None and start > deleted_below:
            wrong.append(f"partition {partition}: starts at {start}, nobody deleted beyond {deleted_below}")
    return wrong


def lost(scenario, acknowledged, records, start):
    """Acknowledged records that should be there and are not."""
    last = {key: offset for offset, (key, _) in sorted(acknowledged.items())}
    for offset, (key, value) in acknowledged.items():
        may_be_gone = offset < start or (scenario.compacted and last[key] != offset)
        if offset not in records and not may_be_gone:
            yield f"{name(value)}, acknowledged at {offset}, is lost"


def name(value):
    return value.rstrip(b".").decode()


def topics_wrong(work, connection):
    """Topics that were made must take records, those deleted must be gone."""
    wrong = []
    for topic in sorted(work.topics_made):
        try:
            when_ready(lambda: connection.produce(topic, 0, wire.batch(b"anything")))
        except (wire.Refused, harness.ServerError) as error:
            wrong.append(f"topic {topic}: {error}")
    for topic in sorted(work.topics_deleted):
        try:
            connection.offset(topic, 0, wire.LATEST)
            wrong.append(f"topic {topic} was deleted and is there")
        except wire.Refused as refused:
            if refused.code != UNKNOWN_TOPIC:
                wrong.append(f"topic {topic} was deleted: {refused}")
    return wrong


def files_wrong(log_directory):
    """What Kafka would not have in a partition's folder after a start: remains of exchanges and deletions, batches
    below their segment's name or above the next one's.
    """
    wrong = []
    for partition in range(PARTITIONS):
        folder = pathlib.Path(log_directory) / f"{TOPIC}-{partition}"
        wrong += [f"{file.name} is left" for file in folder.iterdir() if file.name.endswith(PASSING_SUFFIXES)]
        segments = sorted(folder.glob("*.log"))
        ends = [*(int(file.stem) for file in segments[1:]), 1 << 62]
        for file, end in zip(segments, ends):
            at = int(file.stem)
            for batch in wire.batches(file.read_bytes()):
                if not at <= batch.base_offset <= batch.last_offset < end:
                    wrong.append(f"{file.name}: {batch.base_offset}..{batch.last_offset} where {at}..{end} may be")
                at = batch.last_offset + 1
            for kind in ("index", "timeindex"):
                if not file.with_suffix(f".{kind}").exists():
                    wrong.append(f"{file.name} has no {kind}")
    return wrong
