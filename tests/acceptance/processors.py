#!/usr/bin/env python3
"""Windowed processors in a node: restarts, kill -9, lost stores, poison rows, pauses, new versions, deletions.

Modules and deployments are written as the records that the gateway writes, so that only the node under them is tested;
what came of them is read from topics. Modules are the examples of plugins/, built by `cargo xtask plugins`.

    processors.py [--only NAME] [--keep]
"""

import argparse
import collections
import hashlib
import json
import os
import pathlib
import shutil
import sys
import tempfile
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "harness"))
import server as harness  # noqa: E402

harness.use_venv()
import acknowledged  # noqa: E402
from confluent_kafka import Consumer, Producer, TopicPartition  # noqa: E402
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic  # noqa: E402

MODULES_TOPIC = "__millstream_plugins"
DEPLOYMENTS_TOPIC = "__millstream_deployments"
PIECE_BYTES = 512 << 10
WAIT_SECONDS = 60
MINUTE = 60_000
# The start of a minute; windows of a minute begin here.
START = 1_700_000_040_000


def plugins_folder():
    named = os.environ.get("PLUGINS_FOLDER")
    return pathlib.Path(named) if named else harness.ROOT / "target" / "plugins"


class Node:
    """A node under test and what its users do."""

    def __init__(self, directory):
        self.server = harness.Millstream(directory)
        self.server.start()
        self.created = set()
        self.connect()
        compacted = {"cleanup.policy": "compact"}
        self.create(MODULES_TOPIC, 1, compacted)
        self.create(DEPLOYMENTS_TOPIC, 1, compacted)

    def connect(self):
        """As new clients, which know nothing of how things were."""
        self.admin = AdminClient({"bootstrap.servers": self.server.bootstrap, "logger": acknowledged.quiet_logger()})
        self.producer = Producer(
            {"bootstrap.servers": self.server.bootstrap, "acks": "all", "linger.ms": 2, "logger": acknowledged.quiet_logger()}
        )

    @property
    def stores(self):
        return self.server.data_directory / "stores"

    @property
    def modules(self):
        return self.server.data_directory / "modules"

    def create(self, topic, partitions, configs=None):
        # Rows have event times of long ago, which retention goes by.
        configs = {"retention.ms": "-1", **(configs or {})}
        new = NewTopic(topic, num_partitions=partitions, replication_factor=1, config=configs)
        self.admin.create_topics([new])[topic].result(WAIT_SECONDS)
        self.created.add(topic)

    def delete(self, topic):
        self.admin.delete_topics([topic])[topic].result(WAIT_SECONDS)

    def trim(self, topic, offset):
        """Deletes the records below an offset."""
        self.connect()
        partition = TopicPartition(topic, 0, offset)
        self.admin.delete_records([partition])[partition].result(WAIT_SECONDS)

    def send(self, topic, rows, partition=0):
        """Rows are (key, value) or (key, value, timestamp); they are acknowledged when this comes back."""
        failed = []
        for row in rows:
            key, value, *rest = row
            timestamp = rest[0] if rest else START
            self.producer.produce(
                topic, value, key, partition, timestamp=timestamp, headers=[("h", b"1")],
                on_delivery=lambda error, _: failed.append(error) if error else None,
            )
            self.producer.poll(0)
        assert self.producer.flush(WAIT_SECONDS) == 0 and not failed, failed

    def upload(self, name):
        """The digest of one of the example modules, whose records are written."""
        data = (plugins_folder() / f"{name}.wasm").read_bytes()
        digest = hashlib.sha256(data).hexdigest()
        pieces = [data[at : at + PIECE_BYTES] for at in range(0, len(data), PIECE_BYTES)]
        rows = [(f"{digest}/{number:06}", piece) for number, piece in enumerate(pieces)]
        rows.append((digest, json.dumps({"size_bytes": len(data), "pieces": len(pieces)})))
        self.send(MODULES_TOPIC, rows)
        return digest

    def deploy(self, name, topics=True, **changes):
        """A count of all rows in windows of a minute, unless `changes` say otherwise."""
        deployment = {
            "version": 1, "module": changes.pop("module"), "input": f"{name}-in", "from": "earliest",
            "output": f"{name}-out", "window": {"type": "tumbling", "size_ms": MINUTE, "grace_ms": 0},
            "emit": "update", "config": {"aggregate": "count"}, "paused": False, **changes,
        }
        if topics:
            self.create(f"{name}-changelog", 1, {"cleanup.policy": "compact", "max.message.bytes": str(4 << 20)})
            for topic in {f"{name}-dead-letter", f"{name}-out"} - self.created:
                self.create(topic, 1)
        self.send(DEPLOYMENTS_TOPIC, [(f"processor/{name}", json.dumps(deployment))])
        return deployment

    def redeploy(self, name, deployment, **changes):
        deployment.update(changes)
        self.send(DEPLOYMENTS_TOPIC, [(f"processor/{name}", json.dumps(deployment))])

    def http(self, method, path, body=None, content_type="application/json"):
        """What the HTTP door answers, read as JSON; `None` where it has no body."""
        request = urllib.request.Request(
            self.server.http + path, data=body, method=method, headers={"content-type": content_type}
        )
        with urllib.request.urlopen(request, timeout=WAIT_SECONDS) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def undeploy(self, name):
        self.send(DEPLOYMENTS_TOPIC, [(f"processor/{name}", None)])

    def read(self, topic, partitions=1):
        """Everything in a topic."""
        settings = {"group.id": "reader", "enable.auto.commit": False, "logger": acknowledged.quiet_logger()}
        consumer = Consumer({"bootstrap.servers": self.server.bootstrap, **settings})
        found = []
        try:
            for partition in range(partitions):
                low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), WAIT_SECONDS)
                consumer.assign([TopicPartition(topic, partition, low)])
                while low < high:
                    message = consumer.poll(WAIT_SECONDS)
                    assert message is not None, f"{topic}-{partition} cannot be read beyond {low}"
                    assert not message.error(), message.error()
                    found.append(message)
                    low = message.offset() + 1
        finally:
            consumer.close()
        return found

    def latest(self, topic):
        """The last value of each key and window."""
        values = {}
        for message in self.read(topic):
            headers = dict(message.headers())
            values[(message.key().decode(), int(headers["window.start"]))] = json.loads(message.value())
        return values

    def await_latest(self, topic, expected):
        seen = {}

        def holds():
            nonlocal seen
            seen = self.latest(topic)
            return seen == expected

        try:
            harness.wait_for(holds, f"{topic} holds {expected}", WAIT_SECONDS)
        except harness.ServerError as error:
            raise AssertionError(f"{error}; it holds {seen}") from None

    def await_count(self, topic, count):
        harness.wait_for(lambda: len(self.read(topic)) >= count, f"{topic} has {count} records", WAIT_SECONDS)

    def await_log(self, text, since=0):
        harness.wait_for(lambda: text in self.log()[since:], f"the log says {text!r}", WAIT_SECONDS)

    def log(self):
        return self.server.log_file.read_text(errors="replace")


def counts_go_on_after_a_restart(node):
    node.create("a-in", 1)
    node.deploy("a", module=node.upload("window-aggregates"))
    node.send("a-in", [("k", "1")] * 3)
    node.await_latest("a-out", {("k", START): 3})
    node.server.stop()
    node.server.start()
    node.send("a-in", [("k", "1")])
    node.await_latest("a-out", {("k", START): 4})
    assert [json.loads(message.value()) for message in node.read("a-out")] == [1, 2, 3, 4], "a result was repeated"
    message = node.read("a-out")[0]
    assert dict(message.headers()) == {
        "window.start": str(START).encode(), "window.end": str(START + MINUTE).encode(), "window.kind": b"update",
    }, message.headers()
    assert message.timestamp()[1] == START, message.timestamp()


def kill_9_in_the_middle_loses_and_doubles_nothing(node):
    node.create("b-in", 1)
    node.deploy("b", module=node.upload("window-aggregates"))
    rows = 0
    for number in range(5):
        node.send("b-in", [(f"k{row % 7}", "1") for row in range(3_000)])
        rows += 3_000
        node.await_count("b-out", rows - 2_500)
        node.server.kill()
        node.server.start()
    expected = collections.Counter(f"k{row % 7}" for _ in range(5) for row in range(3_000))
    node.await_latest("b-out", {(key, START): count for key, count in expected.items()})


def a_lost_or_foreign_store_is_made_anew(node):
    node.create("c-in", 1)
    node.deploy("c", module=node.upload("window-aggregates"))
    node.send("c-in", [("k", "1")] * 2)
    node.await_latest("c-out", {("k", START): 2})
    node.server.stop()
    saved = node.server.directory / "saved"
    shutil.copytree(node.stores, saved)
    shutil.rmtree(node.stores)
    node.server.start()
    node.send("c-in", [("k", "1")])
    node.await_latest("c-out", {("k", START): 3})
    # An older store than the changelog is gone on from.
    node.server.stop()
    shutil.rmtree(node.stores)
    shutil.copytree(saved, node.stores)
    node.server.start()
    node.send("c-in", [("k", "1")])
    node.await_latest("c-out", {("k", START): 4})
    # Files that are no store at all.
    node.server.stop()
    for path in node.stores.rglob("*"):
        if path.is_file():
            path.write_bytes(b"\xff" * 100)
    node.server.start()
    node.send("c-in", [("k", "1")])
    node.await_latest("c-out", {("k", START): 5})


def state_outlives_the_rows_it_was_made_of(node):
    node.create("d-in", 1)
    node.deploy("d", module=node.upload("window-aggregates"))
    node.send("d-in", [("k", "1")] * 5)
    node.await_latest("d-out", {("k", START): 5})
    node.trim("d-in", 5)
    node.server.stop()
    shutil.rmtree(node.stores)
    node.server.start()
    node.send("d-in", [("k", "1")])
    node.await_latest("d-out", {("k", START): 6})
    # Rows that are deleted before they were read are passed over.
    deployment = node.deploy("d", topics=False, module=node.upload("window-aggregates"), paused=True)
    node.await_log("task paused")
    node.send("d-in", [("k", "1")] * 3)
    node.trim("d-in", 8)
    node.redeploy("d", deployment, paused=False)
    node.await_latest("d-out", {("k", START): 7})
    assert "rows were deleted before they were read" in node.log()


def a_paused_processor_reads_nothing_and_goes_on(node):
    node.create("e-in", 1)
    deployment = node.deploy("e", module=node.upload("window-aggregates"))
    node.send("e-in", [("k", "1")])
    node.await_latest("e-out", {("k", START): 1})
    node.redeploy("e", deployment, paused=True)
    node.await_log("task paused")
    node.send("e-in", [("k", "1")])
    node.server.stop()
    node.server.start()
    node.await_log("task paused", since=node.log().rindex("ready"))
    assert node.latest("e-out") == {("k", START): 1}
    node.redeploy("e", deployment, paused=False)
    node.await_latest("e-out", {("k", START): 2})


def a_new_version_goes_on_from_the_state_of_the_last(node):
    node.create("f-in", 1)
    config = {"aggregate": "sum"}
    deployment = node.deploy("f", module=node.upload("window-aggregates"), config=config)
    node.send("f-in", [("k", "2"), ("k", "3")])
    node.await_latest("f-out", {("k", START): 5})
    node.redeploy("f", deployment, version=2, config={"aggregate": "max"})
    node.await_log("task ended")
    node.send("f-in", [("k", "4")])
    node.await_latest("f-out", {("k", START): 5})
    node.send("f-in", [("k", "9")])
    node.await_latest("f-out", {("k", START): 9})


def one_poison_row_is_one_dead_letter(node):
    node.create("g-in", 1)
    node.deploy("g", module=node.upload("evil"))
    rows = [("k", "trap poison" if row == 300 else "fine") for row in range(512)]
    node.send("g-in", rows)
    node.await_count("g-out", 511)
    assert len(node.read("g-out")) == 511
    letters = node.read("g-dead-letter")
    assert len(letters) == 1, letters
    letter = letters[0]
    headers = dict(letter.headers())
    assert letter.key() == b"k" and letter.value() == b"trap poison" and letter.timestamp()[1] == START
    reason = headers.pop("dead-letter.reason").decode()
    assert "asked to: poison" in reason, reason
    assert len(headers.pop("dead-letter.module")) == 64
    assert headers == {
        "h": b"1", "dead-letter.topic": b"g-in", "dead-letter.partition": b"0", "dead-letter.offset": b"300",
        "dead-letter.processor": b"g", "dead-letter.version": b"1",
    }, headers


def a_result_that_its_topic_does_not_take_is_a_dead_letter(node):
    node.create("h-in", 1)
    node.create("h-out", 1, {"max.message.bytes": "2000"})
    node.deploy("h", module=node.upload("window-aggregates"), config={"aggregate": "list"})
    node.send("h-in", [("a", '"' + "x" * 3_000 + '"'), ("b", "1")])
    node.await_latest("h-out", {("b", START): [1]})
    node.await_count("h-dead-letter", 1)
    (letter,) = node.read("h-dead-letter")
    headers = dict(letter.headers())
    assert letter.key() == b"a" and headers["dead-letter.output"] == b"h-out", headers
    assert headers["dead-letter.offset"] == b"0" and headers["window.kind"] == b"update", headers


def what_is_deleted_leaves_nothing(node):
    node.create("i-in", 1)
    deployment = node.deploy("i", module=node.upload("window-aggregates"))
    node.send("i-in", [("k", "1")] * 2)
    node.await_latest("i-out", {("k", START): 2})
    node.undeploy("i")
    node.await_log("task ended")
    harness.wait_for(lambda: not node.stores.exists(), "the stores are gone", WAIT_SECONDS)
    node.delete("i-changelog")
    node.create("i-changelog", 1, {"cleanup.policy": "compact"})
    node.redeploy("i", deployment, **{"from": "latest"})
    node.await_count("i-changelog", 1)
    node.send("i-in", [("k", "1")])
    node.await_latest("i-out", {("k", START): 1})


def latest_is_the_end_as_it_was_at_the_start(node):
    node.create("j-in", 1)
    node.send("j-in", [("k", "1")] * 4)
    node.deploy("j", module=node.upload("window-aggregates"), **{"from": "latest"})
    node.await_count("j-changelog", 1)
    node.server.kill()
    node.server.start()
    node.send("j-in", [("k", "1")])
    node.await_latest("j-out", {("k", START): 1})


def final_results_come_once(node):
    node.create("k-in", 1)
    node.deploy("k", module=node.upload("window-aggregates"), emit="final")
    node.send("k-in", [("k", "1")] * 3 + [("k", "1", START + MINUTE)])
    node.await_latest("k-out", {("k", START): 3})
    node.server.kill()
    node.server.start()
    # Late for a window that has closed.
    node.send("k-in", [("k", "1"), ("k", "1", START + 2 * MINUTE)])
    node.await_latest("k-out", {("k", START): 3, ("k", START + MINUTE): 1})
    assert len(node.read("k-out")) == 2


def partitions_that_are_added_get_tasks(node):
    node.create("l-in", 1)
    node.deploy("l", module=node.upload("window-aggregates"))
    node.send("l-in", [("k", "1")])
    node.await_latest("l-out", {("k", START): 1})
    node.admin.create_partitions([NewPartitions("l-in", 3)])["l-in"].result(WAIT_SECONDS)
    node.connect()
    node.send("l-in", [("m", "1")] * 2, partition=2)
    node.await_latest("l-out", {("k", START): 1, ("m", START): 2})
    node.server.stop()
    node.server.start()
    node.send("l-in", [("m", "1")], partition=2)
    node.await_latest("l-out", {("k", START): 1, ("m", START): 3})


def a_topic_that_is_made_anew_does_not_meet_old_state(node):
    node.create("n-in", 1)
    deployment = node.deploy("n", module=node.upload("window-aggregates"))
    node.send("n-in", [("k", "1")] * 3)
    node.await_latest("n-out", {("k", START): 3})
    node.delete("n-in")
    node.await_log("topic n-in was deleted")
    node.create("n-in", 1)
    node.await_log("was deleted and made anew")
    # Again, with what the first attempt has left.
    since = len(node.log())
    node.server.stop()
    node.server.start()
    node.connect()
    node.await_log("was deleted and made anew", since=since)
    node.undeploy("n")
    node.delete("n-changelog")
    node.create("n-changelog", 1, {"cleanup.policy": "compact"})
    node.redeploy("n", deployment)
    node.send("n-in", [("k", "1")])
    node.await_latest("n-out", {("k", START): 1})


def damaged_uploads_are_refused_and_lost_modules_come_back(node):
    node.create("o-in", 1)
    digest = node.upload("window-aggregates")
    wrong = "0" * 64
    node.send(MODULES_TOPIC, [(f"{wrong}/000000", b"\0asm"), (wrong, json.dumps({"size_bytes": 4, "pieces": 1}))])
    node.send(MODULES_TOPIC, [("1" * 64, json.dumps({"size_bytes": 4, "pieces": 1}))])
    node.await_log("the bytes have another digest")
    node.await_log("piece 0 is missing")
    node.deploy("o", module=digest)
    node.send("o-in", [("k", "1")])
    node.await_latest("o-out", {("k", START): 1})
    assert [path.name for path in node.modules.glob("*.wasm")] == [f"{digest}.wasm"]
    node.server.stop()
    path = node.modules / f"{digest}.wasm"
    path.write_bytes(path.read_bytes()[:-1] + b"\xff")
    (node.modules / f"{wrong}.wasm").write_bytes(b"left behind")
    node.server.start()
    node.send("o-in", [("k", "1")])
    node.await_latest("o-out", {("k", START): 2})
    assert hashlib.sha256(path.read_bytes()).hexdigest() == digest
    assert not (node.modules / f"{wrong}.wasm").exists()
    node.undeploy("o")
    node.send(MODULES_TOPIC, [(digest, None)])
    harness.wait_for(lambda: not path.exists(), "the module's file is gone", WAIT_SECONDS)


def plugins_stay_with_the_topic_they_were_bound_to(node):
    """Deleting the topic by any door takes the binding away: one made anew has none, and the module is free."""
    module = (plugins_folder() / "json-binary-serde.wasm").read_bytes()
    uploaded = node.http("POST", "/api/v1/modules", module, "application/wasm")
    digest = uploaded["sha256"]
    node.create("p", 1)
    node.http("PUT", "/api/v1/topics/p/plugins", json.dumps({"value_serde": digest}).encode())
    assert node.http("GET", "/api/v1/topics/p/plugins")["value_serde"] == digest
    node.server.stop()
    node.server.start()
    node.connect()
    harness.wait_for(
        lambda: "value_serde" in node.http("GET", "/api/v1/topics/p/plugins"), "the binding is there again", WAIT_SECONDS
    )
    node.delete("p")
    node.create("p", 1)
    assert "value_serde" not in node.http("GET", "/api/v1/topics/p/plugins")
    node.http("POST", "/api/v1/topics/p/records", b'{"records":[{"value":{"a":1}}]}')
    assert [message.value() for message in node.read("p")] == [b'{"a":1}']
    node.http("DELETE", f"/api/v1/modules/{digest}")


CASES = [
    counts_go_on_after_a_restart,
    kill_9_in_the_middle_loses_and_doubles_nothing,
    a_lost_or_foreign_store_is_made_anew,
    state_outlives_the_rows_it_was_made_of,
    a_paused_processor_reads_nothing_and_goes_on,
    a_new_version_goes_on_from_the_state_of_the_last,
    one_poison_row_is_one_dead_letter,
    a_result_that_its_topic_does_not_take_is_a_dead_letter,
    what_is_deleted_leaves_nothing,
    latest_is_the_end_as_it_was_at_the_start,
    final_results_come_once,
    partitions_that_are_added_get_tasks,
    a_topic_that_is_made_anew_does_not_meet_old_state,
    damaged_uploads_are_refused_and_lost_modules_come_back,
    plugins_stay_with_the_topic_they_were_bound_to,
]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--only", help="run the cases whose names contain this")
    parser.add_argument("--keep", action="store_true", help="keep the data directory when something is wrong")
    options = parser.parse_args()
    passed = failed = 0
    for case in CASES:
        if options.only and options.only not in case.__name__:
            continue
        directory = tempfile.mkdtemp(prefix="millstream-processors-")
        node = None
        try:
            node = Node(directory)
            case(node)
            node.server.stop()
            passed += 1
            print(f"ok    {case.__name__}", flush=True)
        except Exception as error:  # noqa: BLE001
            failed += 1
            print(f"wrong {case.__name__}: {type(error).__name__}: {error}", flush=True)
            if node:
                print(node.server.log_tail(), flush=True)
        finally:
            if node:
                node.server.kill()
            if not (options.keep and failed):
                shutil.rmtree(directory, ignore_errors=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
