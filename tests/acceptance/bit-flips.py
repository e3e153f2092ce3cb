#!/usr/bin/env python3
"""Flipped bits on the disk: all records outside the batch that was hit are served as they were written, nothing else is.

A node is filled with plain and compacted topics under all codecs, in sealed and active segments, and ended: once cleanly,
once by kill -9. From then on each round takes a copy of its data, flips one bit in a random file of each partition (log,
index, time index, producer snapshot, epochs), or one in the checkpoints of the directory, starts the node over it, reads
every partition by raw Fetch requests and compares the bytes with those that were in the files:
- what was not hit is there, byte for byte; a damaged batch is refused with CORRUPT_MESSAGE, and a client that seeks past
  it goes on; the end of the log stands, and a new record is appended there;
- only the last batch of a log that was killed may be gone, if it lay behind the recorded recovery point;
- what lies beside the log changes no answer. The metrics count what is damaged;
- of the committed offsets of groups only those are missing that stood in a damaged batch.
At the end the scrubber has to find by itself what nobody has read.

    bit-flips.py [--flips 1000] [--seed N] [--keep]
"""

import argparse
import contextlib
import pathlib
import random
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "harness"))
import server as harness  # noqa: E402

harness.use_venv()
import confluent_kafka  # noqa: E402
import confluent_kafka.admin  # noqa: E402
import wire  # noqa: E402

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
PARTITIONS = 10
RECORDS = 1200
KEYS = 60
BATCH_RECORDS_MAX = 12
CHECKPOINTS = [
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    "log-start-offset-checkpoint",
    "cleaner-offset-checkpoint",
]
FLIPS_PER_CHECKPOINT_ROUND = 50
GROUPS = 60
GROUP_ROUNDS = 10
CORRUPT_MESSAGE = 2
EARLIEST, LATEST = -2, -1
SHOWN_MAX = 20
WAIT_SECONDS = 60
NOT_LOADED = (
    confluent_kafka.KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    confluent_kafka.KafkaError.COORDINATOR_NOT_AVAILABLE,
    confluent_kafka.KafkaError.NOT_COORDINATOR,
)

FILLING = {"log.cleaner.backoff.ms": "100", "log.flush.offset.checkpoint.interval.ms": "500"}
READING = {
    "log.cleaner.enable": "false",
    "log.retention.check.interval.ms": "3600000",
    "millstream.log.scrub.bytes.per.second": "0",
}
SCRUBBING = {
    **READING,
    "millstream.log.scrub.bytes.per.second": str(1 << 30),
    "log.initial.task.delay.ms": "0",
}


class Batch:
    """A batch in a file, by the header's fields."""

    def __init__(self, data, position, file):
        base, length = struct.unpack_from(">qi", data, position)
        self.delta, _, self.time = struct.unpack_from(">iqq", data, position + 23)
        self.first = base
        self.last = base + self.delta
        self.position = position
        self.file = file
        self.bytes = data[position : position + 12 + length]

    @property
    def end(self):
        return self.position + len(self.bytes)


def batches_in(data, file=None):
    position, found = 0, []
    while position + 61 <= len(data):
        batch = Batch(data, position, file)
        if batch.end > len(data):
            break
        found.append(batch)
        position = batch.end
    return found


class Client:
    """Raw requests with the oldest versions that do: Fetch 4, ListOffsets 1."""

    def __init__(self, port):
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=WAIT_SECONDS)
        self._number = 0

    def close(self):
        self._socket.close()

    def _call(self, key, version, body):
        self._number += 1
        head = struct.pack(">hhih", key, version, self._number, -1)
        self._socket.sendall(struct.pack(">i", len(head) + len(body)) + head + body)
        size = struct.unpack(">i", self._read(4))[0]
        return self._read(size)[4:]

    def _read(self, size):
        parts = bytearray()
        while len(parts) < size:
            part = self._socket.recv(size - len(parts))
            if not part:
                raise OSError("the connection was closed")
            parts += part
        return bytes(parts)

    @staticmethod
    def _text(text):
        return struct.pack(">h", len(text)) + text.encode()

    def fetch(self, topic, partition, offset, size):
        """Error, high watermark, records."""
        body = struct.pack(">iiiib", -1, 0, 1, size, 0) + struct.pack(">i", 1) + self._text(topic)
        body += struct.pack(">iiqi", 1, partition, offset, size)
        answer = self._call(1, 4, body)
        at = 4 + 4 + 2 + len(topic) + 4
        _, error, high_watermark, _, aborted = struct.unpack_from(">ihqqi", answer, at)
        if aborted > 0:
            raise RuntimeError("there are no transactions here")
        at += 26
        length = struct.unpack_from(">i", answer, at)[0]
        return error, high_watermark, answer[at + 4 : at + 4 + max(length, 0)]

    def offset_at(self, topic, partition, time):
        """Error, time and offset of the first record of that time or later."""
        body = struct.pack(">i", -1) + struct.pack(">i", 1) + self._text(topic)
        body += struct.pack(">iiq", 1, partition, time)
        answer = self._call(2, 1, body)
        at = 4 + 2 + len(topic) + 4 + 4
        return struct.unpack_from(">hqq", answer, at)


def metric(server, name):
    text = urllib.request.urlopen(f"{server.http}/metrics", timeout=WAIT_SECONDS).read().decode()
    for line in text.splitlines():
        if line.startswith(f"{name} "):
            return float(line.split()[1])
    raise RuntimeError(f"there is no metric {name}")


def topics():
    for codec in CODECS:
        yield f"plain-{codec}", codec, "delete"
        yield f"compacted-{codec}", codec, "compact"


def create(bootstrap):
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})
    wanted = []
    for topic, _, policy in topics():
        configs = {
            "internal.segment.bytes": str(24 << 10),
            "index.interval.bytes": "512",
            "cleanup.policy": policy,
            "min.cleanable.dirty.ratio": "0.01",
        }
        wanted.append(confluent_kafka.admin.NewTopic(topic, PARTITIONS, 1, config=configs))
    for made in admin.create_topics(wanted).values():
        made.result(WAIT_SECONDS)


def fill(bootstrap, dice):
    for topic, codec, _ in topics():
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "compression.type": codec,
                "enable.idempotence": True,
                "linger.ms": 2,
                "batch.num.messages": dice.randint(2, BATCH_RECORDS_MAX),
            }
        )
        for number in range(RECORDS):
            for partition in range(PARTITIONS):
                value = dice.randbytes(dice.randint(0, 60)).hex().encode()
                producer.produce(topic, value, key=str(dice.randrange(KEYS)), partition=partition)
            producer.poll(0)
            if number % 100 == 0:
                producer.flush(WAIT_SECONDS)
        if producer.flush(WAIT_SECONDS) > 0:
            raise RuntimeError(f"{topic} was not filled")


def places_of_groups():
    """What each group commits: its number, of one partition."""
    place = confluent_kafka.TopicPartition
    return {f"group-{number}": place("plain-none", number % PARTITIONS, number) for number in range(GROUPS)}


def once_loaded(ask, asked):
    """What `ask` answers of a group when the group's coordinator has loaded: this client does not ask again by itself."""
    answers = []

    def has_answered():
        try:
            answers.append(ask([asked])[asked.group_id].result(WAIT_SECONDS))
        except confluent_kafka.KafkaException as error:
            if error.args[0].code() not in NOT_LOADED:
                raise
        return bool(answers)

    harness.wait_for(has_answered, f"the coordinator of {asked.group_id} has loaded", WAIT_SECONDS)
    return answers[0]


def commit(bootstrap):
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})
    for group, place in places_of_groups().items():
        wanted = confluent_kafka.ConsumerGroupTopicPartitions(group, [place])
        once_loaded(admin.alter_consumer_group_offsets, wanted)


def committed(bootstrap):
    """The groups whose offsets are not what they committed: what they are instead."""
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})
    wrong = {}
    for group, place in places_of_groups().items():
        asked = confluent_kafka.ConsumerGroupTopicPartitions(
            group, [confluent_kafka.TopicPartition(place.topic, place.partition)]
        )
        offset = once_loaded(admin.list_consumer_group_offsets, asked).topic_partitions[0].offset
        if offset != place.offset:
            wrong[group] = offset
    return wrong


def prepare(folder, dice):
    """Data of a node that was stopped, and of one that was killed."""
    clean, killed = folder / "clean", folder / "killed"
    server = harness.Millstream(clean, FILLING)
    server.start()
    try:
        create(server.bootstrap)
        fill(server.bootstrap, dice)
        commit(server.bootstrap)
        compacted = len(CODECS) * PARTITIONS
        harness.wait_for(lambda: metric(server, "millstream_cleaner_rounds_total") >= compacted, "compaction")
        server.stop()
        copy(clean, killed)
        server = harness.Millstream(killed, {**FILLING, "log.cleaner.enable": "false"})
        server.start()
        fill(server.bootstrap, dice)
    finally:
        server.kill()
    return clean, killed


def copy(source, target):
    shutil.rmtree(target, ignore_errors=True)
    subprocess.run(["cp", "-a", str(source), str(target)], check=True)


class Partition:
    """What a partition's files hold before anything is flipped."""

    def __init__(self, data, topic, number):
        self.topic = topic
        self.number = number
        self.folder = f"{topic}-{number}"
        self.files = [path for path in sorted((data / self.folder).iterdir()) if is_flipped(path)]
        self.batches = []
        for path in self.files:
            if path.suffix == ".log":
                self.batches += batches_in(path.read_bytes(), path.name)
        self.end = self.batches[-1].last + 1
        self.times = sorted({batch.time for batch in self.batches})

    def batch_at(self, name, byte):
        for batch in self.batches:
            if batch.file == name and batch.position <= byte < batch.end:
                return batch
        raise RuntimeError(f"no batch at {byte} of {name}")


def is_flipped(path):
    named = path.suffix in (".log", ".index", ".timeindex", ".snapshot") or path.name == "leader-epoch-checkpoint"
    return named and path.stat().st_size > 0


def flip(path, byte, bit):
    with open(path, "r+b") as file:
        file.seek(byte)
        value = file.read(1)[0]
        file.seek(byte)
        file.write(bytes([value ^ 1 << bit]))


def recorded(data):
    """The recovery points of a directory."""
    lines = (data / CHECKPOINTS[0]).read_text().splitlines()[2:]
    return {f"{topic}-{partition}": int(offset) for topic, partition, offset in map(str.split, lines)}


def read(client, partition):
    """All that a client gets that seeks past what is refused: batches, refused offsets, high watermark."""
    found, refused = {}, []
    offset = client.offset_at(partition.topic, partition.number, EARLIEST)[2]
    while True:
        error, high_watermark, records = client.fetch(partition.topic, partition.number, offset, 20000)
        if error == CORRUPT_MESSAGE:
            refused.append(offset)
            offset += 1
            if offset > partition.end + 1000:
                raise RuntimeError(f"{partition.folder} refuses all from {refused[0]} on")
            continue
        if error != 0:
            raise RuntimeError(f"{partition.folder} answers {error} at {offset}")
        batches = batches_in(records)
        if not batches:
            return found, refused, high_watermark
        for batch in batches:
            found[batch.first] = batch.bytes
        offset = batches[-1].last + 1


def judge(client, partition, hit, may_be_cut, is_appended):
    """What is wrong with the answers, and whether a range of the partition is damaged."""
    found, refused, high_watermark = read(client, partition)
    expected = {batch.first: batch.bytes for batch in partition.batches if batch is not hit}
    wrong = []
    missing = sorted(set(expected) - set(found))
    if missing:
        wrong.append(f"batches at {missing[:5]} are not served")
    foreign = sorted(first for first in found if found[first] != expected.get(first))
    if foreign:
        wrong.append(f"batches at {foreign[:5]} are not what was written")
    is_cut = hit is not None and may_be_cut and high_watermark == hit.first and hit is partition.batches[-1]
    if high_watermark != partition.end and not is_cut:
        wrong.append(f"the end is {high_watermark} instead of {partition.end}")
    is_damaged = hit is not None and not is_cut
    allowed = range(0)
    if is_damaged:
        at = partition.batches.index(hit)
        behind = partition.batches[at + 1].first if at + 1 < len(partition.batches) else partition.end
        # Between compacted batches are offsets that nobody has.
        allowed = range(partition.batches[at - 1].last + 1 if at > 0 else 0, behind)
    if is_damaged and hit.first not in refused:
        wrong.append(f"the damaged batch at {hit.first} is not refused")
    if any(offset not in allowed for offset in refused):
        wrong.append(f"{refused[:5]} are refused")
    for time in partition.times[:: max(len(partition.times) // 5, 1)]:
        error, _, offset = client.offset_at(partition.topic, partition.number, time)
        later = [batch for batch in partition.batches if batch is not hit and batch.time >= time]
        # Compaction takes records out and leaves the batch its time.
        is_exact = not partition.topic.startswith("compacted") and later
        if error != 0 or is_exact and not later[0].first <= offset <= later[0].last:
            wrong.append(f"time {time} is looked up as {error}, {offset}")
    if is_appended(partition) != high_watermark:
        wrong.append("a new record is not appended at the end")
    return [f"{partition.folder}: {line}" for line in wrong], is_damaged


class Rounds:
    def __init__(self, folder, dice):
        self.folder = folder
        self.dice = dice
        self.wrong = []
        self.flips = 0

    def run(self, source, partitions, flips, settings, scrub=False):
        """Flips one bit each of `flips`: (path within the data, name of the partition or None, byte, bit)."""
        work = self.folder / "work"
        copy(source, work)
        server = harness.Millstream(work, settings)
        points = recorded(server.log_directory)
        hits = {}
        for path, partition, byte, bit in flips:
            flip(server.log_directory / path, byte, bit)
            if partition is not None and path.endswith(".log"):
                hits[partition.folder] = partition.batch_at(pathlib.Path(path).name, byte)
        self.flips += len(flips)
        told = {partition.folder: (path, byte, bit) for path, partition, byte, bit in flips if partition is not None}
        try:
            server.start()
            if scrub:
                self.scrubbed(server, hits)
            else:
                self.judge_all(server, source, partitions, hits, points, told, flips)
            server.stop()
        except (harness.ServerError, OSError, RuntimeError) as error:
            self.wrong.append(f"{source.name}: {flips[:3]}: {error}")
        finally:
            server.kill()

    def judge_all(self, server, source, partitions, hits, points, told, flips):
        appending = wire.Connection(server.port)

        def appended(partition):
            return appending.produce(partition.topic, partition.number, wire.batch(b"value", b"key"))

        damaged = 0
        with contextlib.closing(Client(server.port)) as client:
            for partition in partitions:
                hit = hits.get(partition.folder)
                may_be_cut = source.name == "killed" and hit is not None and hit.first >= points.get(partition.folder, 0)
                wrong, is_damaged = judge(client, partition, hit, may_be_cut, appended)
                damaged += is_damaged
                where = told.get(partition.folder, [path for path, *_ in flips][:1])
                self.wrong += [f"{source.name}: {where}: {line}" for line in wrong]
        counted = metric(server, "millstream_log_damaged_ranges")
        if counted != damaged:
            self.wrong.append(f"{source.name}: {damaged} ranges are damaged, the metric says {counted}")
        appending.close()

    def scrubbed(self, server, hits):
        harness.wait_for(lambda: metric(server, "millstream_scrub_rounds_total") >= 1, "a round of the scrubber")
        counted = metric(server, "millstream_log_damaged_ranges")
        if counted != len(hits):
            self.wrong.append(f"{len(hits)} ranges are damaged, the scrubber found {counted}")


    def run_groups(self, source):
        """Flips a bit in a log of each partition that groups commit to."""
        work = self.folder / "work"
        copy(source, work)
        server = harness.Millstream(work, READING)
        flips = []
        for path in sorted(server.log_directory.glob("__consumer_offsets-*/*.log")):
            if path.stat().st_size > 0:
                name = str(path.relative_to(server.log_directory))
                flips.append((name, *random_flip(self.dice, server.log_directory, name)))
                flip(server.log_directory / name, *flips[-1][1:])
        self.flips += len(flips)
        try:
            server.start()
            lost = committed(server.bootstrap)
            server.stop()
        except (harness.ServerError, confluent_kafka.KafkaException, OSError) as error:
            self.wrong.append(f"groups of {source.name}: {flips}: {error}")
            return
        finally:
            server.kill()
        if len(lost) > len(flips) or any(offset != confluent_kafka.OFFSET_INVALID for offset in lost.values()):
            self.wrong.append(f"groups of {source.name}: {flips}: committed offsets are {lost}")


def random_flip(dice, data, path):
    size = (data / path).stat().st_size
    return dice.randrange(size), dice.randrange(8)


def partition_flips(dice, data, partitions, only_logs=False):
    flips = []
    for partition in partitions:
        files = [path for path in partition.files if path.suffix == ".log" or not only_logs]
        name = dice.choice(files).name
        path = f"{partition.folder}/{name}"
        flips.append((path, partition, *random_flip(dice, data, path)))
    return flips


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--flips", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--keep", action="store_true", help="leave the data where it is")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    dice = random.Random(options.seed)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="millstream-flips-"))
    rounds = Rounds(folder, dice)
    try:
        sources = []
        for source in prepare(folder, dice):
            data = source / "data" / "log"
            named = [(topic, number) for topic, _, _ in topics() for number in range(PARTITIONS)]
            sources.append((source, data, [Partition(data, topic, number) for topic, number in named]))
        number = 0
        while rounds.flips < options.flips:
            source, data, partitions = sources[number % 2]
            number += 1
            if number % 4 == 0:
                # One at a time: they speak of all partitions.
                for _ in range(max(options.flips // FLIPS_PER_CHECKPOINT_ROUND // 4, 1)):
                    name = dice.choice([name for name in CHECKPOINTS if (data / name).stat().st_size > 0])
                    rounds.run(source, partitions, [(name, None, *random_flip(dice, data, name))], READING)
            left = options.flips - rounds.flips
            chosen = dice.sample(partitions, min(len(partitions), max(left, 1)))
            rounds.run(source, partitions, partition_flips(dice, data, chosen), READING)
            print(f"{rounds.flips} flips, {len(rounds.wrong)} wrong", flush=True)
        for number in range(GROUP_ROUNDS):
            rounds.run_groups(sources[number % 2][0])
        source, data, partitions = sources[0]
        rounds.run(source, partitions, partition_flips(dice, data, partitions, only_logs=True), SCRUBBING, scrub=True)
    finally:
        if options.keep:
            print(f"data in {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    for line in rounds.wrong[:SHOWN_MAX]:
        print(f"wrong: {line}")
    failed = len(rounds.wrong)
    print(f"{0 if failed else rounds.flips} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
