#!/usr/bin/env python3
"""What a node knows after it was stopped, killed, or had files of its directory damaged that can be rebuilt.

    restart.py [--server millstream|kafka] [--only CASE,...]

The first case fills the node and always runs.
"""

import argparse
import json
import pathlib
import shutil
import sys
import tempfile
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "harness"))
import server as harness  # noqa: E402

harness.use_venv()
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition  # noqa: E402
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType  # noqa: E402

import acknowledged  # noqa: E402

TOPIC = "kept"
GROUP = "keeper"
# Young enough for retention to leave the records alone.
FIRST_TIMESTAMP = int(time.time() * 1000) - 100_000
RECORDS = 400
POLLS_MAX = 120


def check(expected, actual, what):
    if expected != actual:
        raise AssertionError(f"{what}: expected {expected!r}, got {actual!r}")


def client_settings(server, **more):
    settings = {"bootstrap.servers": server.bootstrap, "logger": acknowledged.quiet_logger()}
    return {**settings, **{key.replace("_", "."): value for key, value in more.items()}}


def produce(server, first, count):
    producer = Producer(client_settings(server, enable_idempotence=True, linger_ms=0, batch_num_messages=3))
    errors = []
    for number in range(first, first + count):
        producer.produce(
            TOPIC, str(number).encode(), partition=0, timestamp=FIRST_TIMESTAMP + number,
            on_delivery=lambda error, _: errors.append(error) if error else None,
        )
    check(0, producer.flush(120), "records left unsent")
    check([], errors, "errors")


def reader(server, **more):
    return Consumer(client_settings(server, group_id=GROUP, enable_auto_commit=False, check_crcs=True, **more))


def values(server, expected_count):
    consumer = reader(server)
    try:
        consumer.assign([TopicPartition(TOPIC, 0, OFFSET_BEGINNING)])
        found = []
        for _ in range(POLLS_MAX):
            found += [int(message.value()) for message in consumer.consume(1000, timeout=1) if not message.error()]
            if len(found) >= expected_count:
                break
        return found
    finally:
        consumer.close()


class State:
    """The server under test and what is expected of it; every case leaves it running."""

    def __init__(self, server):
        self.server = server
        self.count = 0

    def leader_epoch(self):
        path = self.server.log_directory / "__cluster_metadata-0" / "quorum-state"
        return json.loads(path.read_text())["leaderEpoch"]

    def files(self, *endings):
        folder = self.server.log_directory / f"{TOPIC}-0"
        return sorted(path for path in folder.iterdir() if path.suffix in endings)

    def add(self, count):
        produce(self.server, self.count, count)
        self.count += count

    def check_all(self):
        admin = AdminClient(client_settings(self.server))
        check(self.cluster_id, admin.describe_cluster().result(60).cluster_id, "cluster id")
        asked = ConfigResource(ResourceType.TOPIC, TOPIC)
        described = admin.describe_configs([asked])[asked].result(60)
        check(str(1 << 20), described["segment.bytes"].value, "segment.bytes")
        check(list(range(self.count)), values(self.server, self.count), "values")
        consumer = reader(self.server)
        try:
            check((0, self.count), consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), timeout=60), "watermarks")
            for number in (0, self.count // 2, self.count - 1):
                asked = TopicPartition(TOPIC, 0, FIRST_TIMESTAMP + number)
                check(number, consumer.offsets_for_times([asked], timeout=60)[0].offset, "offset by time")
            found = consumer.committed([TopicPartition(TOPIC, 0)], timeout=60)[0]
            check((17, "a note"), (found.offset, found.metadata), "committed")
        finally:
            consumer.close()


def first_start(state):
    acknowledged.create_topic(state.server.bootstrap, TOPIC, 1, {"segment.bytes": str(1 << 20)})
    state.add(RECORDS)
    admin = AdminClient(client_settings(state.server))
    state.cluster_id = admin.describe_cluster().result(60).cluster_id
    consumer = reader(state.server)
    consumer.commit(offsets=[TopicPartition(TOPIC, 0, 17, metadata="a note")], asynchronous=False)
    consumer.close()
    state.check_all()


def clean_restart(state):
    epoch = state.leader_epoch()
    state.server.stop()
    mark = state.server.log_directory / ".kafka_cleanshutdown"
    check(True, mark.exists(), "mark of a clean stop")
    state.server.start()
    check(False, mark.exists(), "mark of a clean stop while it runs")
    check(True, state.leader_epoch() > epoch, "the epoch was raised")
    state.check_all()


def kill(state):
    for _ in range(3):
        epoch = state.leader_epoch()
        state.add(20)
        state.server.kill()
        state.server.start()
        check(True, state.leader_epoch() > epoch, "the epoch was raised")
        state.check_all()


def lost_indexes(state):
    for crash in (False, True):
        state.server.kill() if crash else state.server.stop()
        for path in state.files(".index", ".timeindex", ".snapshot"):
            path.unlink()
        state.server.start()
        state.check_all()


def torn_tail(state):
    """Half of a batch, zeros, and noise behind the last batch; the second start finds nothing more to do."""
    for tail in (None, b"\0" * 300, bytes(range(256))):
        state.add(5)
        state.server.kill()
        log = state.files(".log")[-1]
        data = log.read_bytes()
        with open(log, "ab") as file:
            file.write(data[-40:] if tail is None else tail)
        for _ in range(2):
            state.server.start()
            state.check_all()
            state.server.kill()
        state.server.start()
    state.add(5)
    state.check_all()


def group_goes_on(state):
    """A member keeps its membership over kill -9: same member id, same generation, no rebalance."""
    assignments = []
    consumer = reader(
        state.server, auto_offset_reset="earliest", heartbeat_interval_ms=500, reconnect_backoff_max_ms=200
    )
    consumer.subscribe([TOPIC], on_assign=lambda _, partitions: assignments.append(partitions))
    try:
        poll_until(consumer, lambda: assignments, "an assignment")
        member = consumer.memberid()
        state.server.kill()
        state.server.start()
        poll_until(consumer, lambda: commits(consumer), "a commit after the restart")
        check(1, len(assignments), "assignments")
        check(member, consumer.memberid(), "member id")
        admin = AdminClient(client_settings(state.server))
        described = admin.describe_consumer_groups([GROUP])[GROUP].result(60)
        check([member], [one.member_id for one in described.members], "members")
        consumer.commit(offsets=[TopicPartition(TOPIC, 0, 17, metadata="a note")], asynchronous=False)
    finally:
        consumer.close()
    state.check_all()


def commits(consumer):
    try:
        consumer.commit(offsets=[TopicPartition(TOPIC, 0, 18)], asynchronous=False)
        return True
    except KafkaException:
        return False


def poll_until(consumer, holds, what):
    for _ in range(POLLS_MAX):
        consumer.poll(0.5)
        if holds():
            return
    raise AssertionError(f"{what} did not come")


CASES = [first_start, clean_restart, kill, lost_indexes, torn_tail, group_goes_on]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--server", default="millstream", choices=["millstream", "kafka"])
    parser.add_argument("--only", default="", help="names of cases, separated by commas")
    options = parser.parse_args()
    directory = tempfile.mkdtemp(prefix="millstream-restart-")
    server = harness.make(options.server, directory)
    state = State(server)
    wanted = options.only.split(",") if options.only else [case.__name__ for case in CASES]
    cases = [case for case in CASES if case is first_start or case.__name__ in wanted]
    passed = 0
    try:
        server.start()
        for case in cases:
            case(state)
            passed += 1
            print(f"ok {case.__name__}", flush=True)
        server.stop()
    except (AssertionError, KafkaException, OSError, harness.ServerError):
        print(f"FAILED {cases[min(passed, len(cases) - 1)].__name__}: {traceback.format_exc().strip()}")
        print(server.log_tail())
    finally:
        server.kill()
        shutil.rmtree(directory, ignore_errors=True)
    failed = len(cases) - passed
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
