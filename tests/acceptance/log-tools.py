#!/usr/bin/env python3
"""The operator's tools for log directories, held to Apache Kafka's own tool on the same files.

    log-tools.py [--only CASE,...]

Two nodes are filled by the same clients, ours and Apache Kafka 4.4.0, and stopped. Every line that `millstream log dump`
prints of their logs, indexes, snapshots and internal topics is compared with what Kafka's dump-log prints. Then copies
are damaged, and `log verify` must tell what was done; indexes are garbled, and after `log rebuild-index` they must be
what they were, Kafka's checks must accept them, and a node must answer from them.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "harness"))
import server as harness  # noqa: E402

harness.use_venv()
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition  # noqa: E402

import acknowledged  # noqa: E402

TOOL = harness.TESTS / "peers" / "kafka" / "tool"
TOOL_SECONDS_MAX = 600
FIRST = "00000000000000000000"
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
HEADER_BYTES = 61
# What a JVM prints does not depend on the machine's language.
JAVA_OPTIONS = "-Dstdout.encoding=UTF-8 -Dsun.stdout.encoding=UTF-8 -Dfile.encoding=UTF-8"


SHOWN_MAX = 2000


def check(expected, actual, what):
    if expected != actual:
        expected, actual = repr(expected)[:SHOWN_MAX], repr(actual)[:SHOWN_MAX]
        raise AssertionError(f"{what}: expected {expected}, got {actual}")


def client_settings(server, **more):
    settings = {"bootstrap.servers": server.bootstrap, "logger": acknowledged.quiet_logger()}
    return {**settings, **{key.replace("_", "."): value for key, value in more.items()}}


def send(server, topic, records, **more):
    """Sends (key, value, headers) to partition 0 and waits for the acknowledgements."""
    producer = Producer(client_settings(server, **more))
    errors = []
    for key, value, headers in records:
        producer.produce(
            topic, value, key, partition=0, headers=headers,
            on_delivery=lambda error, _: errors.append(error) if error else None,
        )
    check(0, producer.flush(120), "records left unsent")
    check([], errors, "errors")


def send_one_by_one(server, topic, values):
    producer = Producer(client_settings(server, linger_ms=0, batch_num_messages=1))
    for value in values:
        producer.produce(topic, value, partition=0)
    check(0, producer.flush(120), "records left unsent")


def fill(server, transactions):
    """Everything that has a form of its own on disk."""
    for topic, configs in [
        ("hello", {}),
        ("mixed", {}),
        ("sparse", {}),
        ("rolled", {"segment.bytes": str(1 << 20)}),
        ("stamped", {"message.timestamp.type": "LogAppendTime"}),
    ]:
        acknowledged.create_topic(server.bootstrap, topic, 1, configs)
    send(server, "hello", [(None, b"hello world", None)])
    for codec in CODECS:
        records = [(f"k{number}", f"{codec} {'x' * number}", None) for number in range(50)]
        send(server, "mixed", records, compression_type=codec, linger_ms=50)
    send(server, "mixed", [
        (None, b"no key", None),
        (b"no value", None, None),
        (b"", b"", [("a", b"1"), ("b", None), ("a", b"\xff")]),
        (b"\xff\xfe\x80", "grüße \U0001f30a".encode() + b"\xe2\x82 cut short", [("ü", b"")]),
        (b"tab\tand \"quote\"", b"\x00\x01", None),
    ])
    send(server, "mixed", [(None, str(number).encode(), None) for number in range(40)],
         enable_idempotence=True, batch_num_messages=7)
    send(server, "stamped", [(None, b"by the log", None)] * 3)
    # E10: about 205 bytes a batch.
    send_one_by_one(server, "sparse", [b"v" * 137] * 400)
    send(server, "rolled", [(str(number).encode(), os.urandom(25_000).hex(), None) for number in range(60)],
         enable_idempotence=True)
    consumer = Consumer(client_settings(server, group_id="readers", auto_offset_reset="earliest",
                                        enable_auto_commit=False))
    try:
        consumer.subscribe(["mixed"])
        check(True, bool(consumer.consume(10, timeout=60)), "records were read")
        consumer.commit(offsets=[TopicPartition("mixed", 0, 7, metadata='a "note"')], asynchronous=False)
    finally:
        consumer.close()
    if transactions:
        transact(server)


def transact(server):
    acknowledged.create_topic(server.bootstrap, "transacted", 1)
    producer = Producer(client_settings(server, transactional_id="one", compression_type="zstd"))
    producer.init_transactions(60)
    for number in range(4):
        producer.begin_transaction()
        producer.produce("transacted", f"of transaction {number}", "k", partition=0)
        producer.flush(60)
        producer.abort_transaction(60) if number % 2 else producer.commit_transaction(60)


def files(log_directory, *endings):
    found = []
    for ending in endings:
        found += sorted(log_directory.glob(f"*/*{ending}"))
    return found


def kafka_dump(paths, *arguments, ends_well=True):
    command = [TOOL, "dump-log", *arguments, "--files", ",".join(map(str, paths))]
    environment = {**os.environ, "KAFKA_OPTS": JAVA_OPTIONS}
    ended = subprocess.run(command, capture_output=True, timeout=TOOL_SECONDS_MAX, env=environment)
    text = ended.stdout.decode("utf-8", "surrogateescape")
    if ends_well:
        check(0, ended.returncode, f"dump-log {arguments}: {ended.stderr.decode(errors='replace')[-500:]}")
    return text


def run(*arguments):
    command = [str(harness.binary()), "log", *map(str, arguments)]
    ended = subprocess.run(command, capture_output=True, timeout=TOOL_SECONDS_MAX)
    return ended.returncode, ended.stdout.decode("utf-8", "surrogateescape"), ended.stderr.decode(errors="replace")


def our_dump(paths, *arguments):
    code, out, errors = run("dump", *arguments, *paths)
    check(0, code, f"log dump {arguments}: {errors}")
    return out


def same_lines(paths, kafka_arguments, our_arguments):
    """Compares what both print of the files, line by line; returns the lines."""
    if not paths:
        return []
    expected = kafka_dump(paths, *kafka_arguments).split("\n")
    actual = our_dump(paths, *our_arguments).split("\n")
    for number, (one, other) in enumerate(zip(expected, actual)):
        # Kafka's tool opens what members subscribed to; ours shows the bytes.
        one, other = (line.split('"subscription":', 1)[0] for line in (one, other))
        check(one, other, f"line {number} with {our_arguments}")
    check(len(expected), len(actual), f"lines with {our_arguments}")
    return actual


def compare_all(log_directory, transactions):
    """Every file of a log directory that both can read."""
    logs = [path for path in files(log_directory, ".log") if not path.parent.name.startswith("__")]
    lines = same_lines(logs, ["--print-data-log"], ["--print-records"])
    for codec in CODECS:
        check(True, any(f"compresscodec: {codec} " in line for line in lines), f"a batch in {codec}")
    batches = [line for line in lines if line.startswith("baseOffset:")]
    check(True, all(line.endswith("isvalid: true") for line in batches), "every batch is valid")
    same_lines(logs, ["--deep-iteration"], ["--deep"])
    same_lines(logs, [], [])
    of = {name: sorted(log_directory.glob(f"{name}-*/*.log")) for name in
          ("__consumer_offsets", "__cluster_metadata", "__transaction_state")}
    lines = same_lines(of["__consumer_offsets"], ["--offsets-decoder"], ["--decoder", "offsets"])
    check(True, any('"topic":"mixed"' in line and '"offset":7' in line for line in lines), "the committed offset")
    metadata = of["__cluster_metadata"] + files(log_directory, ".checkpoint")
    lines = same_lines(metadata, ["--cluster-metadata-decoder"], ["--decoder", "metadata"])
    for part in ("LeaderChange: {", '"type":"REGISTER_BROKER_RECORD"', '"name":"mixed"', "SnapshotHeader {"):
        check(True, any(part in line for line in lines), f"{part} in the metadata log")
    same_lines(of["__transaction_state"], ["--transaction-log-decoder"], ["--decoder", "transactions"])
    same_lines(files(log_directory, ".index", ".timeindex"), [], [])
    lines = same_lines(files(log_directory, ".snapshot"), [], [])
    check(True, any(line.startswith("producerId:") for line in lines), "a producer in a snapshot")
    if transactions:
        lines = same_lines(files(log_directory, ".txnindex"), [], [])
        check(2, sum(line.startswith("version: 0 producerId:") for line in lines), "aborted transactions")
    # What only ours reads.
    checkpoint = our_dump([log_directory / "replication-offset-checkpoint"]).split("\n")
    check(True, "topic: sparse partition: 0 offset: 400" in checkpoint, f"the high watermark in {checkpoint}")
    epochs = our_dump([log_directory / "sparse-0" / "leader-epoch-checkpoint"]).split("\n")
    check(["epoch: 0 startOffset: 0", ""], epochs[1:], "leader epochs")
    for name in ("meta.properties", "sparse-0/partition.metadata"):
        check(True, "version: " in our_dump([log_directory / name]), name)


def verified(*paths_and_options):
    """The exit code, and `fault file` of every finding."""
    code, out, errors = run("verify", "--output", "json", "--quiet", *paths_and_options)
    values = [json.loads(line) for line in out.splitlines()]
    found = [value for value in values if value["kind"] == "finding"]
    for finding in found:
        check(True, bool(finding["meaning"] and finding["advice"]), f"words on {finding}")
    return code, [f"{finding['fault']} {pathlib.Path(finding['path']).name}" for finding in found], errors


class State:
    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.ours = harness.make("millstream", self.directory / "millstream")
        self.kafka = harness.make("kafka", self.directory / "kafka")
        self.copies = 0

    def copy(self):
        """Our node's stopped log directory, to be damaged."""
        self.copies += 1
        target = self.directory / f"copy-{self.copies}"
        shutil.copytree(self.ours.log_directory, target)
        return target


def our_files(state):
    state.ours.start()
    fill(state.ours, transactions=False)
    state.ours.stop()
    compare_all(state.ours.log_directory, transactions=False)
    check((0, [], ""), tuple(verified("--records", state.ours.log_directory)), "verify")
    check((0, [], ""), tuple(verified(state.ours.data_directory)), "verify of the data directory")


def hello_world(state):
    """E9: the folder, its files, and what stands in them."""
    folder = state.ours.log_directory / "hello-0"
    names = {path.name for path in folder.iterdir()}
    check(True, {f"{FIRST}{ending}" for ending in (".index", ".log", ".timeindex")} <= names, f"files: {names}")
    log = folder / f"{FIRST}.log"
    check(79, log.stat().st_size, "size of the log")
    text = our_dump([log], "--print-records")
    for part in ("baseOffset: 0 lastOffset: 0 count: 1 ", "magic: 2 compresscodec: none ", "isvalid: true",
                 "keySize: -1 valueSize: 11 ", "payload: hello world"):
        check(True, part in text, f"{part!r} in {text!r}")
    lines = our_dump([log], "--print-records", "--output", "json").splitlines()
    record = [value for value in map(json.loads, lines) if value["kind"] == "record"]
    check([("hello world", 0, [])], [(one["value"], one["offset"], one["headers"]) for one in record], "as JSON")


def sparse_index(state):
    """E10: an entry for at least 4096 bytes of log, 8 bytes each, offsets relative and printed absolute."""
    folder = state.ours.log_directory / "sparse-0"
    size = (folder / f"{FIRST}.log").stat().st_size
    batch = size // 400
    entries = [line.split() for line in our_dump([folder / f"{FIRST}.index"]).splitlines()[1:]]
    check((folder / f"{FIRST}.index").stat().st_size, 8 * len(entries), "8 bytes an entry")
    check(True, len(entries) >= 10, f"entries: {len(entries)}")
    before = 0
    for _, offset, _, position in entries:
        check(int(offset) * batch, int(position), f"position of offset {offset}")
        check(True, int(position) - before > 4096 or before == 0, f"bytes before {position}")
        before = int(position)


def kafka_files(state):
    state.kafka.start()
    fill(state.kafka, transactions=True)
    state.kafka.stop()
    compare_all(state.kafka.log_directory, transactions=True)
    code, found, errors = verified("--records", state.kafka.log_directory)
    check((0, [], ""), (code, found, errors), "verify of Kafka's directory")


def damage(state):
    """Each damage is told by its name, and the sound rest is not."""
    def damaged(name, change):
        copy = state.copy()
        path = copy / name
        data = bytearray(path.read_bytes())
        change(data)
        path.write_bytes(data)
        code, found, _ = verified(copy)
        check(1, code, f"exit code with {name}")
        return found

    def flip(at):
        def change(data):
            data[at] ^= 1
        return change

    log = f"mixed-0/{FIRST}.log"
    check([f"checksum {FIRST}.log"], damaged(log, flip(HEADER_BYTES + 2)), "a flipped bit")
    check([f"unreadable {FIRST}.log", f"offset-gap {FIRST}.log"], damaged(log, flip(8)), "a length that lies")
    check([f"epoch-not-listed {FIRST}.log", f"epoch-goes-back {FIRST}.log"], damaged(log, flip(15)), "an epoch")
    check([f"unreadable {FIRST}.log"], damaged(log, lambda data: data.extend(data[:70])), "a tail")
    check([f"offset-index-entry {FIRST}.index"], damaged(f"sparse-0/{FIRST}.index", flip(7)), "an index")
    check([f"time-index-entry {FIRST}.timeindex"], damaged(f"sparse-0/{FIRST}.timeindex", flip(7)), "a time index")
    snapshots = files(state.ours.log_directory, ".snapshot")
    rolled = [path for path in snapshots if path.parent.name == "rolled-0"][-1]
    check([f"snapshot-unreadable {rolled.name}"], damaged(f"rolled-0/{rolled.name}", flip(10)), "a snapshot")
    found = damaged("recovery-point-offset-checkpoint", lambda data: data.__setitem__(0, ord("9")))
    check(["checkpoint-malformed recovery-point-offset-checkpoint"], found, "a checkpoint")
    found = damaged(log, lambda data: data.clear())
    for fault in ("end-below-recovery-point mixed-0", "high-watermark-above-end mixed-0"):
        check(True, fault in found, f"{fault} in {found}")
    # Kafka's tool and ours agree on which batch is damaged.
    copy = state.copy() / log
    data = bytearray(copy.read_bytes())
    data[HEADER_BYTES + 2] ^= 1
    copy.write_bytes(data)
    expected = [line for line in kafka_dump([copy]).split("\n") if line.startswith("baseOffset:")]
    actual = [line for line in our_dump([copy]).split("\n") if line.startswith("baseOffset:")]
    check(expected, actual, "batches of a damaged log")
    check(1, sum(line.endswith("isvalid: false") for line in actual), "invalid batches")
    code, _, errors = verified(state.directory / "nothing-there")
    check(2, code, "exit code where there is nothing")
    check(True, "nothing-there" in errors, f"the path in {errors!r}")


def rebuild(state):
    """What was lost or garbled is what it was; Kafka's own checks accept it."""
    copy = state.copy()
    indexes = files(copy, ".index", ".timeindex")
    snapshots = files(copy, ".snapshot")
    before = {path: path.read_bytes() for path in indexes + snapshots}
    for number, path in enumerate(indexes):
        path.unlink() if number % 2 else path.write_bytes(bytes(byte ^ 0x5A for byte in before[path]) + b"\1" * 24)
    for path in snapshots:
        if path.parent.name == "rolled-0":
            path.unlink()
    check(1, verified(copy)[0], "exit code before")
    code, _, errors = run("rebuild-index", copy)
    check(0, code, f"rebuild-index: {errors}")
    for path, data in before.items():
        check(data, path.read_bytes(), f"{path}")
    check((0, []), verified(copy)[:2], "verify after")
    # The tool refuses an index without entries.
    with_entries = [path for path in indexes if before[path]]
    text = kafka_dump(with_entries, "--index-sanity-check")
    check(len(with_entries), text.count("passed sanity check"), f"sanity checks in {text}")
    text = kafka_dump(with_entries, "--verify-index-only")
    for word in ("Mismatch", "mismatch", "out of order", "not in"):
        check(False, word in text, f"{word} in {text}")
    check([], [str(path) for path in copy.rglob("*.tmp")], "temporary files")


def rebuild_of_kafkas(state):
    """Apache Kafka's own files come back as it wrote them."""
    copy = state.directory / "kafka-copy"
    shutil.copytree(state.kafka.log_directory, copy)
    indexes = files(copy, ".index", ".timeindex")
    before = {path: path.read_bytes() for path in indexes}
    for path in indexes:
        path.unlink()
    check(0, run("rebuild-index", copy)[0], "rebuild-index")
    for path, data in before.items():
        made = path.read_bytes()
        if path.parent.name == "__cluster_metadata-0":
            # Not closed even by a clean stop: it keeps the zeros that it was made with, and lacks the last time.
            data = data.rstrip(b"\0")
            made = made[: len(data)]
        check(data, made, f"{path}")
    check((0, []), verified(copy)[:2], "verify after")


def running_node(state):
    """A running node may be looked at and is not disturbed; what writes is refused."""
    for path in files(state.ours.log_directory, ".index", ".timeindex"):
        path.unlink()
    check(0, run("rebuild-index", state.ours.data_directory)[0], "rebuild-index")
    state.ours.start()
    consumer = Consumer(client_settings(state.ours, group_id="after", enable_auto_commit=False, check_crcs=True))
    try:
        consumer.assign([TopicPartition("rolled", 0, OFFSET_BEGINNING)])
        records = consumer.consume(60, timeout=120)
        check(list(range(60)), [int(record.key()) for record in records], "records after the rebuild")
        for record in records[::20]:
            asked = TopicPartition("rolled", 0, record.timestamp()[1])
            found = consumer.offsets_for_times([asked], timeout=60)[0].offset
            check(True, 0 <= found <= record.offset(), f"offset by the time of {record.offset()}")
    finally:
        consumer.close()
    send(state.ours, "mixed", [(None, b"while it is looked at", None)] * 100)
    code, found, _ = verified(state.ours.log_directory)
    check((0, []), (code, found), "verify of a running node")
    for path in (state.ours.data_directory, state.ours.log_directory, state.ours.log_directory / "mixed-0"):
        code, _, errors = run("rebuild-index", path)
        check(1, code, f"exit code of {path}")
        check(True, "in use by a running node" in errors, f"the reason in {errors!r}")
    text = our_dump([state.ours.log_directory / "mixed-0" / f"{FIRST}.log"], "--print-records")
    check(100, text.count("while it is looked at"), "records of a running node")
    state.ours.stop()


CASES = [our_files, hello_world, sparse_index, kafka_files, damage, rebuild, rebuild_of_kafkas, running_node]
# What the others look at.
ALWAYS = [our_files]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--only", default="", help="names of cases, separated by commas")
    parser.add_argument("--keep", action="store_true", help="leave the directories for a look")
    options = parser.parse_args()
    names = [case.__name__ for case in CASES]
    wanted = options.only.split(",") if options.only else names
    if unknown := [name for name in wanted if name not in names]:
        parser.error(f"there is no case {', '.join(unknown)}; there are {', '.join(names)}")
    directory = tempfile.mkdtemp(prefix="millstream-log-tools-")
    state = State(directory)
    cases = [case for case in CASES if case in ALWAYS or case.__name__ in wanted]
    passed = 0
    try:
        for case in cases:
            case(state)
            passed += 1
            print(f"ok {case.__name__}", flush=True)
    except (AssertionError, KafkaException, OSError, harness.ServerError, subprocess.SubprocessError):
        print(f"FAILED {cases[min(passed, len(cases) - 1)].__name__}: {traceback.format_exc().strip()}")
    finally:
        state.ours.kill()
        if (state.kafka.directory / "pid").exists():
            state.kafka.kill()
        if options.keep:
            print(f"kept {directory}")
        else:
            shutil.rmtree(directory, ignore_errors=True)
    failed = len(cases) - passed
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
