#!/usr/bin/env python3
"""A full disk under the whole node: clear errors, nothing acknowledged is lost, and once there is room all goes on.

The data lies on a small file system of its own, with files in it that are taken away when room is wanted. Records are
produced with acks=all until the disk takes no more, on partitions whose segments roll often. Then, and after room was
made without a start, after kill -9 on a full disk, and after a stop on a full disk: each acknowledged record is at its
offset. A node that is started on the full disk starts, or says why not. Topics are created on the full disk too, where
the metadata log is what cannot grow. Needs root.

    full-disk.py [--set KEY=VALUE]
"""

import argparse
import collections
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "harness"))
import server as harness  # noqa: E402

harness.use_venv()

from confluent_kafka import KafkaError, KafkaException, Producer  # noqa: E402
from confluent_kafka.admin import AdminClient, NewTopic  # noqa: E402

import acknowledged  # noqa: E402

TOPIC = "full"
PARTITIONS = 3
DISK_BYTES = 48 << 20
BALLAST_BYTES = 4 << 20
# One for each time that the disk is filled.
BALLASTS = 3
SEGMENT_BYTES = 1 << 20
# Large ones fill the disk, small ones its last corners.
VALUE_BYTES = (20_000, 300)
# So many refusals in a row, and the disk is full for records of that size.
REFUSALS_IN_A_ROW = 20
TOPICS_MAX = 2000
DISK_FULL = "No space left on device"
WAIT_SECONDS = 30
SHOWN_MAX = 20


class Disk:
    """A small file system with ballast in it."""

    def __init__(self, folder):
        self.folder = folder
        self.folder.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", folder], check=True)
        self.ballast = [folder / f"ballast-{number}" for number in range(BALLASTS)]
        for file in self.ballast:
            file.write_bytes(bytes(BALLAST_BYTES))

    def make_room(self):
        self.ballast.pop().unlink()
        (self.folder / "stuffing").unlink(missing_ok=True)

    def stuff(self):
        """Takes what is left."""
        with open(self.folder / "stuffing", "ab", buffering=0) as stuffing:
            for size in (4096, 1):
                try:
                    while True:
                        stuffing.write(bytes(size))
                except OSError:
                    pass

    def remove(self):
        subprocess.run(["umount", "-l", self.folder], check=False)


class Records:
    """Produces numbered records one by one and knows what became of each."""

    def __init__(self):
        self.next = 0
        self.acknowledged = {}
        self.refused = collections.Counter()

    def produce(self, bootstrap, size, enough):
        """One at a time until `enough` says so of the last outcomes: (acknowledged, refusals in a row)."""
        producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "retries": 0,
                "linger.ms": 0,
                "message.timeout.ms": WAIT_SECONDS * 1000,
                "logger": acknowledged.quiet_logger(),
            }
        )
        done = in_a_row = 0

        def delivered(error, message):
            nonlocal done, in_a_row
            if error is None:
                number = int(message.value().split(b".", 1)[0])
                self.acknowledged[number] = (message.partition(), message.offset())
                done, in_a_row = done + 1, 0
            else:
                self.refused[error.name()] += 1
                in_a_row += 1

        while not enough(done, in_a_row):
            value = f"{self.next}.".encode().ljust(size, b".")
            producer.produce(TOPIC, value, partition=self.next % PARTITIONS, on_delivery=delivered)
            self.next += 1
            producer.flush(WAIT_SECONDS)
        return done

    def fill(self, bootstrap):
        full = lambda _, in_a_row: in_a_row >= REFUSALS_IN_A_ROW  # noqa: E731
        return sum(self.produce(bootstrap, size, full) for size in VALUE_BYTES)

    def more(self, bootstrap, count):
        """So many more are acknowledged, unless as many are refused."""
        ended = lambda done, in_a_row: done >= count or in_a_row >= count  # noqa: E731
        return self.produce(bootstrap, VALUE_BYTES[1], ended) >= count

    def lost(self, bootstrap):
        found = acknowledged.read_all(bootstrap, TOPIC, PARTITIONS)
        return acknowledged.differences(self.acknowledged, found)


def create(bootstrap, name):
    """The name of the error, or None."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "logger": acknowledged.quiet_logger()})
    try:
        admin.create_topics([NewTopic(name, 1, 1)], operation_timeout=WAIT_SECONDS)[name].result(WAIT_SECONDS)
    except KafkaException as error:
        return error.args[0].name()
    return None


def create_until_refused(bootstrap, stem):
    """The topics that were created, and the error that ended it."""
    created = []
    for number in range(TOPICS_MAX):
        error = create(bootstrap, f"{stem}-{number}")
        if error is not None:
            return created, error
        created.append(f"{stem}-{number}")
    return created, None


def unserved(bootstrap, topics):
    """The topics that take no record; a client tries for a while, as clients do."""
    settings = {"bootstrap.servers": bootstrap, "acks": "all", "message.timeout.ms": WAIT_SECONDS * 1000}
    producer = Producer({**settings, "logger": acknowledged.quiet_logger()})
    wrong = []

    def delivered(error, message):
        if error is not None:
            wrong.append(f"topic {message.topic()} takes no record: {error.name()}")

    for name in topics:
        producer.produce(name, b"anything", on_delivery=delivered)
    producer.flush(2 * WAIT_SECONDS)
    return wrong


def missing(bootstrap, topics):
    admin = AdminClient({"bootstrap.servers": bootstrap, "logger": acknowledged.quiet_logger()})
    known = admin.list_topics(timeout=WAIT_SECONDS).topics
    return [f"topic {name} is gone" for name in topics if name not in known]


class Run:
    def __init__(self, disk, server):
        self.disk = disk
        self.server = server
        self.records = Records()
        self.topics = []
        self.checks = []

    def check(self, name, wrong):
        """`wrong` lists what is so; empty is good."""
        for line in wrong[:SHOWN_MAX]:
            print(f"  {line}")
        print(f"{'FAILED' if wrong else 'ok'} {name}", flush=True)
        self.checks.append(not wrong)

    def nothing_is_lost(self, when):
        bootstrap = self.server.bootstrap
        self.check(f"nothing_is_lost_{when}", self.records.lost(bootstrap) + missing(bootstrap, self.topics))

    def refused_clearly(self, name, refused):
        storage_error = KafkaError(KafkaError.KAFKA_STORAGE_ERROR).name()
        wrong = [f"{error}: {count} times" for error, count in refused.items() if error != storage_error]
        self.check(name, wrong if refused else ["nothing was refused"])

    def serves(self, when):
        bootstrap = self.server.bootstrap
        wrong = [] if self.records.more(bootstrap, 50) else [f"records are refused: {dict(self.records.refused)}"]
        error = create(bootstrap, f"served-{when}")
        if error is None:
            self.topics.append(f"served-{when}")
        else:
            wrong.append(f"a topic is refused: {error}")
        self.check(f"produces_and_creates_{when}", wrong)
        self.check(f"topics_created_on_the_full_disk_take_records_{when}", unserved(bootstrap, self.topics))

    def fill(self):
        self.records.refused.clear()
        filled = self.records.fill(self.server.bootstrap)
        print(f"{filled} more records until the disk was full, refused: {dict(self.records.refused)}", flush=True)
        self.disk.stuff()
        created, error = create_until_refused(self.server.bootstrap, f"filled-{len(self.topics)}")
        self.topics += created
        print(f"{len(created)} topics more, then {error}", flush=True)
        return error

    def starts_or_says_why_not(self):
        wrong = []
        try:
            self.server.start()
            wrong = self.records.lost(self.server.bootstrap)
        except harness.ServerError as error:
            wrong = [] if DISK_FULL in str(error) else [str(error)]
        self.server.kill()
        self.check("starts_on_the_full_disk_or_says_why_not", wrong)

    def all_of_it(self):
        server, disk = self.server, self.disk
        acknowledged.create_topic(server.bootstrap, TOPIC, PARTITIONS, {"segment.bytes": str(SEGMENT_BYTES)})

        error = self.fill()
        self.refused_clearly("records_are_refused_clearly", self.records.refused)
        self.refused_clearly("topics_are_refused_clearly", collections.Counter([error] if error else []))
        self.check("the_node_goes_on", [] if server.process.poll() is None else [server.log_tail()])
        self.nothing_is_lost("on_the_full_disk")

        disk.make_room()
        self.serves("once_there_is_room")
        self.nothing_is_lost("once_there_is_room")

        self.fill()
        server.kill()
        self.starts_or_says_why_not()
        disk.make_room()
        server.start()
        self.nothing_is_lost("after_kill_9_on_the_full_disk")
        self.serves("after_kill_9")

        self.fill()
        try:
            server.stop()
        except harness.ServerError as stopped:
            # It may say that it could not leave all in good order, and then says why.
            self.check("an_unclean_stop_says_why", [] if DISK_FULL in str(stopped) else [str(stopped)])
        disk.make_room()
        server.start()
        self.nothing_is_lost("after_a_stop_on_the_full_disk")
        self.serves("after_a_stop")
        self.check("no_panic", [line for line in server.log_tail(1_000_000).splitlines() if "panicked" in line])
        server.stop()
        server.start()
        self.nothing_is_lost("at_the_end")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("full-disk needs root: it mounts a file system")
        return 2
    directory = pathlib.Path(tempfile.mkdtemp(prefix="millstream-full-disk-"))
    disk = Disk(directory / "disk")
    server = harness.make("millstream", directory / "node", dict(pair.split("=", 1) for pair in options.set))
    server.data_directory = disk.folder / "data"
    server.log_directory = server.data_directory / "log"
    run = Run(disk, server)
    try:
        server.start()
        run.all_of_it()
        server.stop()
    except harness.ServerError as error:
        run.check("starts_and_stops", [str(error)])
    finally:
        server.kill()
        if not all(run.checks):
            print(server.log_tail())
        disk.remove()
        shutil.rmtree(directory, ignore_errors=True)
    failed = sum(not good for good in run.checks)
    print(f"{len(run.checks) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
