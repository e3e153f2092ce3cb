#!/usr/bin/env python3
"""Partitions move between the log directories of a node while they are written to and read, and the node is killed.

One idempotent producer with acks=all sends all the while; at the end the topic is read whole and compared with what was
acknowledged. Kafka's own tools ask for a move and say how it went. Answers and errors are those of Apache Kafka, which
passes the cases that no node is killed in.

    move-directories.py [--rounds 6] [--seed N] [--server millstream|kafka] [--only CASE,...] [--keep]
"""

import argparse
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "harness"))
import server as harness  # noqa: E402

harness.use_venv()
from confluent_kafka import Consumer, TopicPartition  # noqa: E402
from confluent_kafka.admin import (  # noqa: E402
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigSource,
    ConfigResource,
    ResourceType,
)

import acknowledged  # noqa: E402
import wire  # noqa: E402

TOOL = harness.TESTS / "peers" / "kafka" / "tool"
TOPIC = "moving"
PARTITIONS = 3
OFFSETS = "__consumer_offsets"
OFFSETS_PARTITIONS = 4
GROUP = "follower"
RATE_KEY = "replica.alter.log.dirs.io.max.bytes.per.second"
# Slow enough for a kill to come into the middle of a copy.
SLOW_BYTES_PER_SECOND = 1 << 20
RECORDS_BEFORE_MOVE = 4000
SHOWN_MAX = 20
RECORDS_PER_SECOND = 3000
# Kafka's error codes.
NONE, UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC, LOG_DIR_NOT_FOUND = 0, 3, 17, 57


def check(expected, actual, what):
    if expected != actual:
        raise AssertionError(f"{what}: expected {expected!r}, got {actual!r}")


class State:
    def __init__(self, server, directories, dice, rounds):
        self.server = server
        self.directories = directories
        self.dice = dice
        self.rounds = rounds
        self.workload = None

    def ask(self, act):
        connection = wire.Connection(self.server.port)
        try:
            return act(connection)
        finally:
            connection.close()

    def logs(self, topic):
        """Partition → its directory, and partition → that of its copy."""
        found = [log for log in self.ask(wire.Connection.log_dirs) if log.topic == topic]
        here = {log.partition: log.path for log in found if not log.is_future}
        return here, {log.partition: log for log in found if log.is_future}

    def other(self, path):
        return next(directory for directory in self.directories if directory != path)

    def alter(self, topic, partitions, path):
        return self.ask(lambda connection: connection.alter_log_dirs({path: {topic: partitions}}))

    def move(self, topic, partition, path):
        check({(topic, partition): NONE}, self.alter(topic, [partition], path), "alter replica log dirs")

    def has_moved(self, topic, partition, path):
        here, coming = self.logs(topic)
        return here.get(partition) == path and partition not in coming

    def await_moved(self, topic, partition, path):
        harness.wait_for(lambda: self.has_moved(topic, partition, path), f"{topic}-{partition} in {path}", 120)

    def folders(self, beginning):
        paths = [path for directory in self.directories for path in pathlib.Path(directory).iterdir()]
        return sorted(path.name for path in paths if path.name.startswith(beginning))

    def set_rate(self, rate):
        operation = AlterConfigOpType.DELETE if rate is None else AlterConfigOpType.SET
        change = ConfigEntry(
            RATE_KEY, str(rate or 0), source=ConfigSource.DYNAMIC_BROKER_CONFIG, incremental_operation=operation
        )
        resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[change])
        admin = AdminClient({"bootstrap.servers": self.server.bootstrap, "logger": acknowledged.quiet_logger()})
        admin.incremental_alter_configs([resource])[resource].result(60)

    def progress(self, count):
        if not self.workload.wait_acknowledged(count):
            raise AssertionError(f"no progress: {self.workload.errors[:3]}")


def answers(state):
    """Kafka's answers to what cannot be done, and to what is done already."""
    here, _ = state.logs(TOPIC)
    check({(TOPIC, 0): LOG_DIR_NOT_FOUND}, state.alter(TOPIC, [0], "/no/such/directory"), "no directory")
    check({(TOPIC, 0): LOG_DIR_NOT_FOUND}, state.alter(TOPIC, [0], here[0] + "/"), "spelled otherwise")
    check({(TOPIC, 99): UNKNOWN_TOPIC_OR_PARTITION}, state.alter(TOPIC, [99], here[0]), "no partition")
    check({("none", 0): UNKNOWN_TOPIC_OR_PARTITION}, state.alter("none", [0], here[0]), "no topic")
    check({("a b", 0): UNKNOWN_TOPIC_OR_PARTITION}, state.alter("a b", [0], here[0]), "no topic's name")
    check({("x" * 230, 0): INVALID_TOPIC}, state.alter("x" * 230, [0], here[0]), "too long")
    check({(TOPIC, 0): NONE}, state.alter(TOPIC, [0], here[0]), "where it is")
    check({}, state.logs(TOPIC)[1], "copies")


def a_partition_that_is_made_later(state):
    path = state.dice.choice(state.directories)
    wanted = {("later", partition): UNKNOWN_TOPIC_OR_PARTITION for partition in range(4)}
    check(wanted, state.alter("later", list(range(4)), path), "before it is there")
    acknowledged.create_topic(state.server.bootstrap, "later", 4)
    harness.wait_for(lambda: len(state.logs("later")[0]) == 4, "the partitions")
    check({partition: path for partition in range(4)}, state.logs("later")[0], "directories")


def under_load(state):
    """Each partition moves to the other directory and back."""
    for _ in range(2):
        here, _ = state.logs(TOPIC)
        for partition in range(PARTITIONS):
            state.move(TOPIC, partition, state.other(here[partition]))
        for partition in range(PARTITIONS):
            state.await_moved(TOPIC, partition, state.other(here[partition]))
        state.progress(500)
    harness.wait_for(lambda: not [name for name in state.folders(TOPIC) if name.endswith("-future")], "no copies")


def a_group_goes_on(state):
    """The groups' own partitions move under a member that commits."""
    settings = {"bootstrap.servers": state.server.bootstrap, "group.id": GROUP, "logger": acknowledged.quiet_logger()}
    consumer = Consumer({**settings, "enable.auto.commit": False, "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe([TOPIC])
        here, _ = state.logs(OFFSETS)
        wanted = {}
        for partition, path in here.items():
            wanted[partition] = state.other(path)
            state.move(OFFSETS, partition, wanted[partition])
        committed = 0
        while committed < 20 or not all(state.has_moved(OFFSETS, *move) for move in wanted.items()):
            if consumer.consume(200, timeout=5):
                consumer.commit(asynchronous=False)
                committed += 1
        asked = [TopicPartition(TOPIC, partition) for partition in range(PARTITIONS)]
        check(
            [place.offset for place in consumer.position(asked)],
            [place.offset for place in consumer.committed(asked, timeout=60)],
            "committed offsets",
        )
    finally:
        consumer.close()


def cancelled(state):
    """The directory that the partition lies in: the copy is given up."""
    state.set_rate(SLOW_BYTES_PER_SECOND // 8)
    here, _ = state.logs(TOPIC)
    state.move(TOPIC, 0, state.other(here[0]))
    harness.wait_for(lambda: state.logs(TOPIC)[1][0].size_bytes > 0, "the copy grows")
    check(state.other(here[0]), state.logs(TOPIC)[1][0].path, "directory of the copy")
    state.move(TOPIC, 0, here[0])
    harness.wait_for(lambda: not state.logs(TOPIC)[1], "no copy")
    harness.wait_for(lambda: not [name for name in state.folders(TOPIC) if name.endswith("-future")], "no folder")
    check(here, state.logs(TOPIC)[0], "directories")
    state.set_rate(None)


def deleted(state):
    """A topic goes, and its copy with it."""
    acknowledged.create_topic(state.server.bootstrap, "short", 1)
    harness.wait_for(lambda: state.logs("short")[0], "the partition")
    path = state.logs("short")[0][0]
    connection = wire.Connection(state.server.port)
    for _ in range(8):
        connection.produce("short", 0, wire.batch(b"x" * 500_000))
    state.set_rate(SLOW_BYTES_PER_SECOND // 8)
    state.move("short", 0, state.other(path))
    harness.wait_for(lambda: state.logs("short")[1][0].size_bytes > 0, "the copy grows")
    connection.delete_topic("short")
    connection.close()
    harness.wait_for(lambda: not state.folders("short-"), "no folder")
    state.set_rate(None)


def by_tools(state):
    """kafka-reassign-partitions asks and verifies, kafka-log-dirs shows."""
    here, _ = state.logs(TOPIC)
    target = state.other(here[1])
    plan = state.server.directory / "plan.json"
    partition = {"topic": TOPIC, "partition": 1, "replicas": [1], "log_dirs": [target]}
    plan.write_text(json.dumps({"version": 1, "partitions": [partition]}))
    tool(state, "reassign-partitions", "--execute", "--reassignment-json-file", plan,
         "--replica-alter-log-dirs-throttle", 50_000_000)
    state.await_moved(TOPIC, 1, target)
    printed = tool(state, "reassign-partitions", "--verify", "--reassignment-json-file", plan)
    check(True, f"Reassignment of replica {TOPIC}-1-1 completed successfully" in printed, printed)
    described = tool(state, "log-dirs", "--describe", "--topic-list", TOPIC)
    line = next(line for line in described.splitlines() if line.startswith("{"))
    broker = json.loads(line)["brokers"][0]
    found = {
        log["partition"]: directory["logDir"]
        for directory in broker["logDirs"]
        for log in directory["partitions"]
        if not log["isFuture"]
    }
    check(target, found[f"{TOPIC}-1"], "directory as the tool shows it")


def tool(state, name, *arguments):
    command = [TOOL, name, "--bootstrap-server", state.server.bootstrap, *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    if done.returncode:
        raise AssertionError(f"{name} {arguments}: {done.returncode}\n{done.stdout}")
    return done.stdout


def killed(state):
    """kill -9 somewhere in the middle: nothing is lost, and the move goes on by itself."""
    for number in range(state.rounds):
        is_slow = number % 2 == 0
        state.set_rate(SLOW_BYTES_PER_SECOND if is_slow else None)
        here, _ = state.logs(TOPIC)
        for partition in range(PARTITIONS):
            state.move(TOPIC, partition, state.other(here[partition]))
        if is_slow:
            harness.wait_for(lambda: any(copy.size_bytes for copy in state.logs(TOPIC)[1].values()), "a copy grows")
        # Anywhere between the beginning of the first copy and the end of the last.
        time.sleep(state.dice.random() / 4)
        state.server.kill()
        ends = state.workload.ends()
        names = [name for name in state.folders(TOPIC) if name[len(TOPIC) + 1 :].isdigit()]
        check(True, set(names) == {f"{TOPIC}-{partition}" for partition in range(PARTITIONS)}, names)
        state.server.start()
        check([], acknowledged.short_of(state.server.bootstrap, TOPIC, ends), "high watermarks")
        state.set_rate(None)
        for partition in range(PARTITIONS):
            state.await_moved(TOPIC, partition, state.other(here[partition]))
        state.progress(100)
        print(f"killed {number + 1}: {len(state.workload.acknowledged)} acknowledged", flush=True)


def restarted(state):
    """After a stop in good order everything is where it was."""
    here, _ = state.logs(TOPIC)
    state.server.stop()
    state.server.start()
    check((here, {}), state.logs(TOPIC), "directories")
    state.progress(100)


CASES = [
    answers,
    a_partition_that_is_made_later,
    under_load,
    a_group_goes_on,
    cancelled,
    deleted,
    by_tools,
    killed,
    restarted,
]


def run(state, cases):
    acknowledged.create_topic(state.server.bootstrap, TOPIC, PARTITIONS, {"segment.bytes": str(1 << 20)})
    state.workload = acknowledged.Workload(state.server.bootstrap, TOPIC, per_second=RECORDS_PER_SECOND)
    state.progress(RECORDS_BEFORE_MOVE)
    wrong = []
    for case in cases:
        try:
            case(state)
            print(f"ok {case.__name__}", flush=True)
        except Exception:
            wrong.append(case.__name__)
            print(f"not ok {case.__name__}\n{traceback.format_exc()}", flush=True)
            if state.server.process_id() is None:
                break
    state.workload.finish()
    found = acknowledged.read_all(state.server.bootstrap, TOPIC, PARTITIONS)
    different = acknowledged.differences(state.workload.acknowledged, found) + state.workload.errors
    for line in different[:SHOWN_MAX]:
        print(f"wrong: {line}")
    print(f"{len(state.workload.acknowledged)} acknowledged, {sum(map(len, found.values()))} read")
    state.server.stop()
    return wrong + ["what was acknowledged"] * bool(different)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--server", default="millstream", choices=["millstream", "kafka"])
    parser.add_argument("--only", help="names of cases, with commas between")
    parser.add_argument("--keep", action="store_true", help="keep the data directory when something is wrong")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    chosen = options.only.split(",") if options.only else None
    cases = [case for case in CASES if chosen is None or case.__name__ in chosen]
    root = pathlib.Path(tempfile.mkdtemp(prefix="millstream-move-"))
    directories = [str(root / "data" / "log"), str(root / "second")]
    if options.server == "kafka":
        directories[0] = str(root / "data")
        # That case looks at folders as we leave them.
        cases = [case for case in cases if case is not killed]
    settings = {"log.dirs": ",".join(directories), "offsets.topic.num.partitions": str(OFFSETS_PARTITIONS)}
    server = harness.make(options.server, root, settings)
    wrong = ["did not get to the end"]
    try:
        server.start()
        wrong = run(State(server, directories, random.Random(options.seed), options.rounds), cases)
    finally:
        if wrong:
            print(server.log_tail())
        server.kill()
        if wrong and options.keep:
            print(f"kept {root}")
        else:
            shutil.rmtree(root, ignore_errors=True)
    for name in wrong:
        print(f"failed: {name}")
    print(f"{len(cases) + 1 - len(wrong)} passed, {len(wrong)} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
