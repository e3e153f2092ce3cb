#!/usr/bin/env python3
"""Compaction from outside, with Apache Kafka 4.4.0 beside it.

    compaction.py [--only PART,...] [--messages N] [--mib N] [--keys N] [--record-bytes N]

tester   Kafka's LogCompactionTester over this node, for each codec; the topic must really become smaller
same     one log, written through Kafka, compacted by both: what consumers see is the same
worked   the worked example of a compacted topic with a tombstone, on both
offsets  the offsets of groups: many commits, cleaned, killed, and still right
large    --mib of data with --keys keys, compacted by both: exactly the last value of each key is left

The large one prints megabytes a second and CPU seconds of the cleaner's threads; `--mib 1024 --keys 100000` is the size
that says something. Files are in the page cache.
"""

import argparse
import array
import concurrent.futures
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS / "harness"))
sys.path.insert(0, str(TESTS / "bench"))
import measure  # noqa: E402
import server as harness  # noqa: E402

harness.use_venv()
import acknowledged  # noqa: E402
import compacted  # noqa: E402
from confluent_kafka import Consumer, TopicPartition  # noqa: E402
from confluent_kafka.admin import AdminClient  # noqa: E402

CODECS = ["none", "lz4", "snappy", "zstd", "gzip"]
TESTERS_AT_ONCE_MAX = 3
SEGMENT_BYTES_MIN = 1 << 20
HOUR_MS = compacted.HOUR_MS
RETENTION_MS = 1000
SEED = 4


class Failed(AssertionError):
    """Something is not as it should be."""


def expect(holds, what):
    if not holds:
        raise Failed(what)


def equal(found, expected, what):
    if found == expected:
        return
    if isinstance(found, list) and isinstance(expected, list):
        for at, (one, other) in enumerate(zip(found, expected)):
            if one != other:
                raise Failed(f"{what}: row {at} is {one}, expected {other}")
        raise Failed(f"{what}: {len(found)} rows, expected {len(expected)}")
    raise Failed(f"{what}: {found}, expected {expected}")


def long_ago():
    """A time that leaves room for hours of records before now."""
    return int(time.time() * 1000) - 100 * HOUR_MS


# Kafka's own tester


def tester(options, directory):
    settings = {
        **compacted.SETTINGS,
        "log.segment.bytes": str(SEGMENT_BYTES_MIN),
        "log.cleaner.min.cleanable.ratio": "1.0",
        "auto.create.topics.enable": "true",
    }
    server = harness.Millstream(directory / "tester", settings).start()
    try:
        with concurrent.futures.ThreadPoolExecutor(TESTERS_AT_ONCE_MAX) as pool:
            runs = {codec: pool.submit(one_tester, server, codec, options.messages, directory) for codec in CODECS}
            for codec, run in runs.items():
                yield f"tester {codec}", run.result
    finally:
        server.kill()


def one_tester(server, codec, messages, directory):
    """Holds the tool between writing and reading until its topic is compacted."""
    temporary = directory / f"tester-{codec}"
    temporary.mkdir()
    command = [compacted.TOOL, "org.apache.kafka.tools.LogCompactionTester"]
    command += ["--bootstrap-server", server.bootstrap, "--messages", str(messages), "--compression-type", codec]
    command += ["--percent-deletes", "10", "--topics", "1", "--duplicates", "100", "--sleep", "1"]
    environment = {**os.environ, "KAFKA_OPTS": f"-Djava.io.tmpdir={temporary}", "TMPDIR": str(temporary)}
    tool = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    )
    said, report = [], ""
    try:
        for line in tool.stdout:
            said.append(line)
            if line.startswith("Sleeping"):
                tool.send_signal(signal.SIGSTOP)
                report = compact_now(server, "".join(said))
                tool.send_signal(signal.SIGCONT)
        code = tool.wait()
    finally:
        tool.kill()
        tool.wait()
    text = "".join(said)
    expect(code == 0, f"the tester ended with {code}:\n{text}")
    expect(report, f"the tester never slept:\n{text}")
    verdict = re.search(r"Validated (\d+) values, (\d+) mismatches", text)
    expect(verdict is not None and int(verdict[1]) > 0 and verdict[2] == "0", f"the tester's verdict:\n{text}")
    reduction = re.search(r"(\d+) rows of data produced, (\d+) rows of data consumed", text)
    produced, consumed = int(reduction[1]), int(reduction[2])
    expect(consumed < produced, f"{consumed} of {produced} rows are left")
    return f"{report}; {produced} rows produced, {consumed} consumed, {verdict[1]} values validated"


def compact_now(server, said):
    topic = re.search(r"(log-cleaner-test-[\w-]+)", said)[1]
    before = compacted.segments(server, topic)
    expect(len(before) > 2, f"{topic} has segments of {list(before.values())} bytes: too few to say anything")
    compacted.clean(server, topic)
    total, left = sum(before.values()), compacted.size(server, topic)
    active = list(before.values())[-1]
    # A hundredth of the values is left of what was sealed, and what is active stays.
    expect(left < active + (total - active) / 4, f"{topic} had {total} bytes and has {left}")
    return f"{total >> 10} KiB in {len(before)} segments became {left >> 10} KiB"


# The same log under both


def same(_options, directory):
    kafka = harness.Kafka(directory / "same-kafka", compacted.SETTINGS).start()
    ours = harness.Millstream(directory / "same-ours", compacted.SETTINGS).start()
    topic, servers = "same", (kafka, ours)
    try:
        for server in servers:
            # Records without a key are of the time before a topic was compacted.
            plain = {"cleanup.policy": "delete", "retention.ms": "-1", "delete.retention.ms": str(RETENTION_MS)}
            # Markers have the time of the server, so records that begin a segment must come from the future.
            compacted.create(server, topic, {**plain, "message.timestamp.after.max.ms": str((1 << 63) - 1)})
        time_ms = write_of_all_kinds(kafka, topic)
        for server in servers:
            compacted.alter(server, topic, "cleanup.policy", "compact")
            server.stop()
        compacted.transplant(compacted.folder(kafka, topic), ours, topic)
        for server in servers:
            server.start()
        # As long as nothing is compacted, aborted records are there, and this node has no transactions.
        yield "same: the uncompacted log", lambda: compare(servers, topic, isolations=["read_uncommitted"])
        for server in servers:
            compacted.clean(server, topic)
        yield "same: after the first round", lambda: compare(servers, topic, tombstones=True)
        # What the first round has marked is out of date a second later.
        cleaned = time.time()
        harness.wait_for(lambda: time.time() > cleaned + 2 * RETENTION_MS / 1000, "tombstones are out of date")
        for server in servers:
            rows = [(b"plain-1", b"later", time_ms), (b"roll-2", b"", time_ms + 2 * HOUR_MS)]
            compacted.send(server, topic, rows)
            compacted.clean(server, topic)
        yield "same: after the second round", lambda: compare(servers, topic, tombstones=False)
    finally:
        ours.kill()
        kafka.kill()


def write_of_all_kinds(server, topic):
    """Values, tombstones, empty ones, headers, by plain, idempotent and transactional producers, in every codec."""
    draw = random.Random(SEED)
    time_ms = int(time.time() * 1000)
    headers = [[], [("h", b"1")], [("h", b"1"), ("h", None), ("", b"")]]

    def rows(prefix, count, keys):
        for number in range(count):
            value = draw.choice([None, b"", b"null", f"{prefix} {number}".encode() * draw.choice([1, 100])])
            key = f"{prefix}-{draw.randrange(keys)}".encode()
            key = draw.choices([key, b"", None], [96, 2, 2])[0]
            yield key, value, time_ms + draw.randrange(-1000, 1000), draw.choice(headers)

    for turn, codec in enumerate(CODECS):
        for prefix, options in {
            "plain": {"enable_idempotence": False},
            "idempotent": {"enable_idempotence": True},
            f"gone-{codec}": {"enable_idempotence": True},
        }.items():
            sender = compacted.producer(server, **options, compression_codec=codec, **{"linger_ms": 50})
            for at, row in enumerate(rows(prefix, 400, 30)):
                compacted.produce(sender, topic, *row)
                if at % 37 == 0:
                    compacted.flush(sender)
            compacted.flush(sender)
        sender = compacted.producer(server, transactional_id=f"t-{codec}", compression_codec=codec)
        sender.init_transactions(60)
        for number in range(6):
            sender.begin_transaction()
            for row in rows("transactional", 20, 15):
                compacted.produce(sender, topic, *row)
            compacted.flush(sender)
            end = sender.abort_transaction if number % 3 == 1 else sender.commit_transaction
            end(60)
        # A new segment, but for the last of which everything is to be cleaned.
        time_ms += 2 * HOUR_MS
        compacted.send(server, topic, [(f"roll-{turn % 2}".encode(), codec.encode(), time_ms)])
    time_ms += 2 * HOUR_MS
    compacted.send(server, topic, [(b"roll-1", b"active", time_ms)])
    return time_ms


def compare(servers, topic, tombstones=None, isolations=("read_committed", "read_uncommitted")):
    kafka, ours = servers
    for isolation in isolations:
        theirs = compacted.read(kafka, topic, isolation=isolation)
        equal(compacted.read(ours, topic, isolation=isolation), theirs, f"what is left, {isolation}")
    for start in range(0, theirs[-1][0], 997):
        first = [compacted.read(server, topic, start=start, limit=1)[:1] for server in servers]
        equal(first[1], first[0], f"the first record from {start} on")
    equal(compacted.ends(ours, topic), compacted.ends(kafka, topic), "where the log begins and ends")
    sealed = max(compacted.segments(ours, topic))
    found = sum(value is None for offset, _, value, *_ in theirs if offset < sealed)
    expect(tombstones is None or tombstones == (found > 0), f"there are {found} tombstones")
    for server in servers:
        compacted.dump(server, topic)
    sizes = [f"{server.name} {compacted.size(server, topic)} bytes" for server in servers]
    return f"{len(theirs)} records, {found} sealed tombstones; " + ", ".join(sizes)


# The worked example


def worked(_options, directory):
    servers = [
        harness.Kafka(directory / "worked-kafka", compacted.SETTINGS),
        harness.Millstream(directory / "worked-ours", compacted.SETTINGS),
    ]
    for server in servers:
        server.start()
        try:
            yield f"worked: {server.name}", lambda server=server: worked_example(server)
        finally:
            server.kill()


def worked_example(server):
    topic, time_ms = "worked", long_ago()
    compacted.create(server, topic, {"delete.retention.ms": str(RETENTION_MS)})

    def write(text, hours):
        rows = []
        for row in text.split():
            key, value = row.split(":")
            rows.append((key.encode(), value.encode() if value != "null" else None, time_ms + hours * HOUR_MS))
        compacted.send(server, topic, rows)

    def left(start=0):
        rows = compacted.read(server, topic, start=start)
        return [f"{row[0]} {row[1].decode()}:{'null' if row[2] is None else row[2].decode()}" for row in rows]

    write("k1:v1 k2:v2 k1:v3 k3:v4 k4:v5 k5:v6 k6:v7 k2:v8 k6:v9", 0)
    write("k7:v10", 2)
    active = compacted.segments(server, topic)[9]
    compacted.clean(server, topic)
    expected = ["2 k1:v3", "3 k3:v4", "4 k4:v5", "5 k5:v6", "7 k2:v8", "8 k6:v9", "9 k7:v10"]
    equal(left(), expected, "the latest value of each key")
    equal(compacted.segments(server, topic)[9], active, "the active segment's size")
    equal(left(6)[0], "7 k2:v8", "the first record from a removed offset on")
    write("k3:null", 2)
    write("k8:v11", 4)
    compacted.clean(server, topic)
    expected = [row for row in expected if "k3" not in row] + ["10 k3:null", "11 k8:v11"]
    equal(left(), expected, "a tombstone after its first pass")
    cleaned = time.time()
    harness.wait_for(lambda: time.time() > cleaned + 2 * RETENTION_MS / 1000, "the tombstone is out of date")
    write("k9:v12", 6)
    compacted.clean(server, topic)
    expected = [row for row in expected if "k3" not in row] + ["12 k9:v12"]
    equal(left(), expected, "after the tombstone's time")
    compacted.dump(server, topic)
    return f"left are {', '.join(left())}"


# Offsets of groups

OFFSETS_TOPIC = "__consumer_offsets"
OFFSETS_PARTITIONS = 50
COMMITS = 1500


def offsets(_options, directory):
    settings = {
        **compacted.SETTINGS,
        "offsets.topic.num.partitions": "1",
        "offsets.topic.segment.bytes": str(SEGMENT_BYTES_MIN),
    }
    server = harness.Millstream(directory / "offsets", settings).start()
    try:
        acknowledged.create_topic(server.bootstrap, "read", OFFSETS_PARTITIONS)
        commit_many(server, "gone", 20)
        admin = AdminClient({"bootstrap.servers": server.bootstrap, "logger": acknowledged.quiet_logger()})
        admin.delete_consumer_groups(["gone"])["gone"].result(60)
        commit_many(server, "stays", COMMITS)
        yield "offsets: compacted", lambda: offsets_compacted(server)
        yield "offsets: after kill -9", lambda: offsets_after_kill(server)
    finally:
        server.kill()


def group_member(server, group):
    return Consumer(
        {
            "bootstrap.servers": server.bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "logger": acknowledged.quiet_logger(),
        }
    )


def commit_many(server, group, commits):
    """A member that commits all its partitions over and over."""
    member = group_member(server, group)
    try:
        member.subscribe(["read"])

        def has_all():
            member.poll(0.1)
            return len(member.assignment()) == OFFSETS_PARTITIONS

        harness.wait_for(has_all, f"{group} has its partitions")
        for number in range(1, commits + 1):
            rows = [
                TopicPartition("read", partition, number * 100 + partition, metadata=f"commit {number}")
                for partition in range(OFFSETS_PARTITIONS)
            ]
            member.commit(offsets=rows, asynchronous=False)
    finally:
        member.close()


def committed(server, group):
    member = group_member(server, group)
    try:
        asked = [TopicPartition("read", partition) for partition in range(OFFSETS_PARTITIONS)]
        return [(row.offset, row.metadata) for row in member.committed(asked, 60)]
    finally:
        member.close()


def removed_records(server):
    with urllib.request.urlopen(f"{server.http}/metrics", timeout=60) as page:
        text = page.read().decode()
    return float(re.search(r"^millstream_cleaner_removed_records_total (\S+)", text, re.M)[1])


def offsets_compacted(server):
    before = compacted.segments(server, OFFSETS_TOPIC)
    compacted.alter(server, OFFSETS_TOPIC, compacted.RATIO, "0.0001")
    compacted.await_clean(server, OFFSETS_TOPIC)
    after = compacted.segments(server, OFFSETS_TOPIC)
    removed, written = removed_records(server), COMMITS * OFFSETS_PARTITIONS
    expect(removed > written / 2, f"{removed:.0f} of {written} records are removed")
    sealed = list(after.values())[:-1]
    # What is left of what was sealed is one value for each partition, and what the group is.
    expect(sum(sealed) < 64 << 10, f"the sealed segments have {sealed} bytes")
    compacted.dump(server, OFFSETS_TOPIC, 0, "--offsets-decoder")
    return f"{removed:.0f} of {written} records removed; from {sum(before.values())} to {sum(after.values())} bytes"


def offsets_after_kill(server):
    before = compacted.size(server, OFFSETS_TOPIC)
    server.kill()
    server.start()
    expected = [(COMMITS * 100 + partition, f"commit {COMMITS}") for partition in range(OFFSETS_PARTITIONS)]
    equal(committed(server, "stays"), expected, "the offsets of the group")
    equal({offset for offset, _ in committed(server, "gone")}, {-1001}, "the offsets of the deleted group")
    expect(compacted.size(server, OFFSETS_TOPIC) <= before, "the log has grown by the restart")
    compacted.dump(server, OFFSETS_TOPIC, 0, "--offsets-decoder")
    commit_many(server, "stays", 2)
    expected = [(200 + partition, "commit 2") for partition in range(OFFSETS_PARTITIONS)]
    equal(committed(server, "stays"), expected, "the offsets of the group when it has gone on")
    return f"{OFFSETS_PARTITIONS} offsets are right in {before} bytes"


# A large one, and what it takes

SEGMENT_BYTES = 64 << 20


def large(options, directory):
    records = (options.mib << 20) // options.record_bytes
    configs = {"segment.bytes": str(SEGMENT_BYTES), "delete.retention.ms": str(24 * HOUR_MS)}
    ours = harness.Millstream(directory / "large-ours", compacted.SETTINGS).start()
    kafka = harness.Kafka(directory / "large-kafka", compacted.SETTINGS).start()
    topic, rows = "large", []
    try:
        for server in (ours, kafka):
            compacted.create(server, topic, configs)
        last = fill(ours, topic, records, options)
        for server in (ours, kafka):
            server.stop()
        compacted.transplant(compacted.folder(ours, topic), kafka, topic)
        for server in (ours, kafka):
            server.start()
            try:
                yield f"large: {server.name}", lambda server=server: rows.append(measured(server, topic, records, last))
            finally:
                server.kill()
    finally:
        ours.kill()
        kafka.kill()
    print(table(options, rows), flush=True)


def key_of(number):
    return b"key-%09d" % number


def fill(server, topic, records, options):
    """Produces records of random keys, and one that closes the last segment; the last offset of each key."""
    draw = random.Random(SEED)
    time_ms = long_ago()
    last = array.array("q", [-1]) * options.keys
    # The record's own frame, as well as it is known without looking.
    padding = b"." * max(options.record_bytes - len(key_of(0)) - 30, 0)
    sender = compacted.producer(
        server,
        enable_idempotence=True,
        linger_ms=20,
        batch_size=500_000,
        queue_buffering_max_messages=200_000,
        compression_codec=options.compression,
    )
    for offset in range(records):
        key = draw.randrange(options.keys)
        last[key] = offset
        compacted.produce(sender, topic, key_of(key), b"%012d" % offset + padding, time_ms)
    compacted.flush(sender)
    compacted.send(server, topic, [(b"roll", b"", time_ms + 2 * HOUR_MS)])
    return last


def measured(server, topic, records, last):
    before = compacted.size(server, topic)
    sealed = before - list(compacted.segments(server, topic).values())[-1]
    expect(len(compacted.segments(server, topic)) > 1, "the log has only one segment")
    for path in compacted.folder(server, topic).iterdir():
        path.read_bytes()
    thread, process = compacted.thread_seconds(server), measure.cpu_seconds(server.process_id())
    begin = time.monotonic()
    compacted.alter(server, topic, compacted.RATIO, "0.0001")
    compacted.await_clean(server, topic)
    seconds = time.monotonic() - begin
    thread = compacted.thread_seconds(server) - thread
    process = measure.cpu_seconds(server.process_id()) - process
    kept = sorted(offset for offset in last if offset >= 0)
    found = compacted.read(server, topic)
    equal([row[0] for row in found], [*kept, records], "the offsets that are left")
    keys = {offset: key_of(key) for key, offset in enumerate(last)}
    for offset, key, value, *_ in found[:-1]:
        if key != keys[offset] or not value.startswith(b"%012d" % offset):
            raise Failed(f"offset {offset} has key {key} and value {value[:20]}")
    if server.name == "millstream":
        map_bytes = [int(found) for found in re.findall(r"map_bytes=(\d+)", server.log_file.read_text())]
        limit = int(compacted.SETTINGS["log.cleaner.dedupe.buffer.size"])
        expect(map_bytes and max(map_bytes) <= limit, f"the key maps took {map_bytes} bytes")
    return [
        server.name,
        f"{sealed / (1 << 20):.0f}",
        f"{compacted.size(server, topic) / (1 << 20):.0f}",
        f"{seconds:.2f}",
        f"{sealed / seconds / (1 << 20):.0f}",
        f"{thread:.2f}",
        f"{process:.2f}",
    ]


def table(options, rows):
    head = ["server", "MiB", "MiB after", "seconds", "MiB/s", "CPU s of the cleaner", "CPU s of the process"]
    lines = [head, *(row for row in rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(head))]
    text = [f"{options.keys} keys, records of about {options.record_bytes} bytes, compression {options.compression}:"]
    text += ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines]
    return "\n".join(text)


PARTS = {"tester": tester, "same": same, "worked": worked, "offsets": offsets, "large": large}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help=f"of {', '.join(PARTS)}, separated by commas")
    parser.add_argument("--messages", type=int, default=1_000_000, help="for each codec of the tester")
    parser.add_argument("--mib", type=int, default=256)
    parser.add_argument("--keys", type=int, default=25_000)
    parser.add_argument("--record-bytes", type=int, default=256)
    parser.add_argument("--compression", default="none", choices=CODECS)
    options = parser.parse_args()
    wanted = options.only.split(",") if options.only else list(PARTS)
    passed = failed = 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    for part in wanted:
        with tempfile.TemporaryDirectory(prefix="compaction-") as directory:
            for name, check in PARTS[part](options, pathlib.Path(directory)):
                try:
                    said = check()
                    passed += 1
                    print(f"{name}: {said or 'passed'}", flush=True)
                except (AssertionError, harness.ServerError) as error:
                    failed += 1
                    print(f"FAILED {name}: {error}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
