#!/usr/bin/env python3
"""Disks that fail and clocks that jump under a node with two log directories: only what lies on the failed disk stops,
nothing acknowledged is lost, and where the node cannot go on it ends and says why.

The second directory is an ext4 file system of its own in an image file. Errors come from strace's injection into the
running node, from the kernel's own switches for an ext4 that fails (its shutdown call, its error trigger), and from what
an operator may do: a disk that is not mounted, one of another node, one that is there twice. Each case repairs the disk,
starts again and reads everything. Needs root, and libfaketime for the clocks.

    disk-faults.py [--only CASE,CASE]
"""

import argparse
import ctypes
import fcntl
import glob
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "harness"))
import server as harness  # noqa: E402
import strace  # noqa: E402
import wire  # noqa: E402

harness.use_venv()

from confluent_kafka import KafkaException, Producer, TopicPartition  # noqa: E402
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType  # noqa: E402

import acknowledged  # noqa: E402

PARTITIONS = 8
IMAGE_BYTES = 64 << 20
RECORDS = 20
# Enough for all partitions of their topic.
GROUPS = 12
VALUE_BYTES = 500
WAIT_SECONDS = 60
SHOWN_MAX = 20
STORAGE_ERROR = 56
INVALID_TIMESTAMP = 32
HOUR = 3600
# _IOR('X', 125, __u32): the file system is no more, what is in its journal is written out (0) or not (2).
EXT4_SHUTDOWN = 0x8004587D
SHUTDOWN_WITHOUT_JOURNAL = 2
CASES = {}


def case(function):
    CASES[function.__name__.replace("_", "-")] = function
    return function


def call(*words):
    subprocess.run([str(word) for word in words], check=True, stdout=subprocess.DEVNULL)


class Disk:
    """An ext4 file system in an image file."""

    def __init__(self, folder, name):
        self.image = folder / f"{name}.img"
        self.mounted = folder / name
        self.mounted.mkdir()
        with open(self.image, "wb") as file:
            file.truncate(IMAGE_BYTES)
        call("mkfs.ext4", "-q", "-F", "-m", "0", self.image)
        self.mount()

    def mount(self):
        call("mount", "-o", "loop,errors=remount-ro", self.image, self.mounted)

    def unmount(self):
        subprocess.run(["umount", self.mounted], check=False, stderr=subprocess.DEVNULL)

    def repair(self):
        """As an operator does: take it out, check it, put it back."""
        self.unmount()
        # 1: errors were found and corrected.
        done = subprocess.run(["e2fsck", "-f", "-y", self.image], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if done.returncode > 1:
            raise RuntimeError(f"e2fsck ended with {done.returncode}")
        self.mount()

    def become_read_only(self):
        """The kernel finds an error and mounts the file system read-only, whatever is open."""
        device = pathlib.Path(
            subprocess.run(
                ["findmnt", "-no", "SOURCE", self.mounted], check=True, capture_output=True, text=True
            ).stdout.strip()
        ).name
        pathlib.Path(f"/sys/fs/ext4/{device}/trigger_fs_error").write_text("tried on purpose")

    def die(self):
        """Every call fails with EIO from now on, and what was not synced is gone."""
        folder = os.open(self.mounted, os.O_RDONLY)
        try:
            fcntl.ioctl(folder, EXT4_SHUTDOWN, ctypes.c_uint32(SHUTDOWN_WITHOUT_JOURNAL))
        finally:
            os.close(folder)


class Node:
    """A node with a first directory, which holds the metadata log, and more of them; and what it has acknowledged."""

    def __init__(self, folder, directories, settings=None, wrapper=()):
        self.directories = [pathlib.Path(directory) for directory in directories]
        self.server = harness.Millstream(
            folder, {"log.dirs": ",".join(map(str, self.directories)), **(settings or {})}, wrapper
        )
        self.expected = {}
        self.wrong = []

    def start(self):
        self.server.start()
        return self

    def connection(self):
        return wire.Connection(self.server.port, WAIT_SECONDS)

    def create(self, topic, partitions=PARTITIONS, configs=None):
        connection = self.connection()
        try:
            connection.create_topic(topic, partitions, configs)
        finally:
            connection.close()

    def produce(self, topic, partition, records=RECORDS):
        """Until something is refused; gives the error's code, 0 if nothing is."""
        connection = self.connection()
        try:
            for _ in range(records):
                number = len(self.expected)
                value = f"{topic}-{partition}-{number}.".encode().ljust(VALUE_BYTES, b".")
                offset = connection.produce(topic, partition, wire.batch(value))
                self.expected[value] = (topic, partition, offset)
        except wire.Refused as refused:
            return refused.code
        finally:
            connection.close()
        return 0

    def fetch(self, topic, partition, offset=0):
        """The error's code, and the values from there on."""
        connection = self.connection()
        try:
            found = {}
            while data := connection.fetch(topic, partition, offset):
                for batch in wire.batches(data):
                    for offset, _, value in batch.records:
                        found[value] = (topic, partition, offset)
                offset += 1
            return 0, found
        except wire.Refused as refused:
            return refused.code, {}
        finally:
            connection.close()

    def lost(self, partitions=None):
        """What is acknowledged and not there; `partitions` are those that are to be there, all if it is not said."""
        places = {(topic, partition) for topic, partition, _ in self.expected.values()}
        wrong = []
        for topic, partition in sorted(places if partitions is None else partitions):
            code, found = self.fetch(topic, partition)
            if code != 0:
                wrong.append(f"{topic}-{partition} is not read: error {code}")
            for value, place in self.expected.items():
                if place[:2] == (topic, partition) and code == 0 and found.get(value) != place:
                    wrong.append(f"{value[:40]} of {place} is at {found.get(value)}")
        return wrong

    def leaders(self, topic):
        admin = AdminClient({"bootstrap.servers": self.server.bootstrap, "logger": acknowledged.quiet_logger()})
        partitions = admin.list_topics(topic, timeout=WAIT_SECONDS).topics[topic].partitions
        return {index: partition.leader for index, partition in partitions.items()}

    def within(self, directory, topic):
        """The partitions of the topic that lie in a directory."""
        folders = (folder.name.rsplit("-", 1) for folder in directory.iterdir() if folder.is_dir())
        return sorted(int(parts[1]) for parts in folders if len(parts) == 2 and parts[0] == topic)

    def metric(self, name):
        text = urllib.request.urlopen(f"{self.server.http}/metrics", timeout=WAIT_SECONDS).read().decode()
        for line in text.splitlines():
            if line.startswith(f"{name} "):
                return float(line.split()[1])
        raise RuntimeError(f"there is no metric {name}")

    def configure(self, topic, changes):
        """`None` takes the topic's own value away."""
        entries = [
            ConfigEntry(
                name,
                value,
                incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET,
            )
            for name, value in changes.items()
        ]
        admin = AdminClient({"bootstrap.servers": self.server.bootstrap, "logger": acknowledged.quiet_logger()})
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        admin.incremental_alter_configs([resource])[resource].result(WAIT_SECONDS)

    def log_start(self, topic, partition=0):
        connection = self.connection()
        try:
            return connection.offset(topic, partition, wire.EARLIEST)
        finally:
            connection.close()

    def said(self, text):
        return text in self.server.log_tail(100_000)

    def ends_with_failure(self):
        """What is wrong with how the node ended by itself."""
        process = self.server.process
        try:
            code = process.wait(WAIT_SECONDS)
        except subprocess.TimeoutExpired:
            return ["the node goes on"]
        self.server.process = None
        return [] if code > 0 else [f"the node ended with {code}"]

    def refuses_to_start(self, text):
        try:
            self.server.start()
        except harness.ServerError as error:
            self.server.process = None
            return [] if text in str(error) else [f"it does not say {text!r}: {error}"]
        self.server.kill()
        return ["it starts"]


class Run:
    def __init__(self, folder):
        self.folder = folder
        self.checks = []
        self.case = ""
        self.disks = []
        self.nodes = []

    def check(self, name, wrong):
        """`wrong` lists what is so; empty is good."""
        for line in wrong[:SHOWN_MAX]:
            print(f"  {line}")
        print(f"{'FAILED' if wrong else 'ok'} {self.case}: {name}", flush=True)
        self.checks.append(not wrong)

    def disk(self, name="second"):
        disk = Disk(self.folder, name)
        self.disks.append(disk)
        return disk

    def node(self, directories, settings=None, wrapper=(), name="node"):
        node = Node(self.folder / name, directories, settings, wrapper)
        self.nodes.append(node)
        return node

    def clean(self):
        for node in self.nodes:
            node.server.kill()
        for disk in self.disks:
            disk.unmount()
        self.nodes, self.disks = [], []
        for path in list(self.folder.iterdir()):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()

    def two(self, settings=None):
        """A node with two directories and a topic over both, with records; the disk of the second."""
        disk = self.disk()
        first, second = self.folder / "first", disk.mounted / "log"
        node = self.node([first, second], settings).start()
        node.create("t")
        sides = (node.within(first, "t"), node.within(second, "t"))
        self.check("the partitions lie in both directories", [] if all(sides) else [f"they lie so: {sides}"])
        for partition in range(PARTITIONS):
            if code := node.produce("t", partition):
                self.check("records are taken", [f"t-{partition}: error {code}"])
        # By it the controller finds what lies in a directory.
        harness.wait_for(lambda: assigned(node), "all partitions are assigned to directories")
        return disk, node, *sides

    def goes_on_with_the_first(self, node, first, second):
        """The second directory is dead, and that is all."""
        self.check(
            "what lies there is refused, reads too",
            [f"t-{it}: {code}" for it in second if (code := node.produce("t", it, 1)) != STORAGE_ERROR]
            + [f"t-{it} is read: {code}" for it in second if (code := node.fetch("t", it)[0]) != STORAGE_ERROR],
        )
        harness.wait_for(lambda: all(node.leaders("t")[it] == -1 for it in second), "nobody leads what lies there")
        leaders = node.leaders("t")
        self.check("the rest is led", [f"t-{it}: {leaders[it]}" for it in first if leaders[it] == -1])
        self.check(
            "the rest takes records and is read",
            [f"t-{it}: {code}" for it in first if (code := node.produce("t", it))] + node.lost({("t", it) for it in first}),
        )
        self.new_partitions_lie_in_the_first(node, "after")
        wrong = [] if node.metric("millstream_log_directories_offline") == 1 else ["the metric does not say so"]
        self.check("it is told", wrong + ([] if node.said("the log directory is offline") else ["the log does not"]))

    def new_partitions_lie_in_the_first(self, node, topic):
        node.create(topic)
        wrong = [f"{topic}-{it}: {code}" for it in range(PARTITIONS) if (code := node.produce(topic, it, 2))]
        lie = node.within(node.directories[0], topic)
        self.check("new partitions lie in the first", wrong + ([] if len(lie) == PARTITIONS else [f"only {lie} do"]))

    def restarts(self, node, disk):
        """After a stop, a repair and a start everything is as it was."""
        node.server.stop()
        disk.repair()
        node.start()
        self.check("nothing is lost after repair and restart", node.lost())
        wrong = [f"t-{it}: {code}" for it in range(PARTITIONS) if (code := node.produce("t", it, 2))]
        self.check("all takes records again", wrong)
        self.no_panic(node)

    def no_panic(self, node):
        lines = node.server.log_tail(1_000_000).splitlines()
        self.check("no panic", [line for line in lines if "panicked" in line])


def assigned(node):
    """Whether the controller has been told where all the partitions lie: they are in its log."""
    told = subprocess.run(
        [harness.binary(), "log", "dump", "--print-records", "--decoder", "metadata", *glob.glob(f"{node.directories[0]}/__cluster_metadata-0/*.log")],
        capture_output=True,
        text=True,
    ).stdout
    return told.count('"directories":') >= 2 * PARTITIONS


def log_of(directory, partition, topic="t"):
    return directory / f"{topic}-{partition}" / f"{0:020}.log"


def fail(node, calls, path, error="EIO", output=None):
    """The named system calls fail on this file until the injection is stopped."""
    options = ["-P", path, "-e", f"trace={calls}", "-e", f"inject={calls}:error={error}", "-o", output or "/dev/null"]
    return strace.Attached(node.server.process_id(), [str(option) for option in options])


@case
def fsync_error(run):
    """A sync fails: it is not tried again, and the directory is dead."""
    disk, node, first, second = run.two()
    trace = run.folder / "trace"
    injected = fail(node, "fdatasync", log_of(node.directories[1], second[0]), output=trace)
    code = node.produce("t", second[0], 1)
    run.check("the record is refused", [] if code == STORAGE_ERROR else [f"error {code}"])
    run.goes_on_with_the_first(node, first, second)
    injected.stop()
    syncs = trace.read_text().count("fdatasync(")
    run.check("the sync is not tried again", [] if syncs == 1 else [f"{syncs} syncs"])
    run.check("what lies there stays refused", [] if node.produce("t", second[0], 1) == STORAGE_ERROR else ["it is not"])
    run.restarts(node, disk)


@case
def write_error(run):
    """A write fails."""
    disk, node, first, second = run.two()
    injected = fail(node, "pwritev,pwritev2,pwrite64", log_of(node.directories[1], second[0]))
    code = node.produce("t", second[0], 1)
    run.check("the record is refused", [] if code == STORAGE_ERROR else [f"error {code}"])
    injected.stop()
    run.goes_on_with_the_first(node, first, second)
    run.restarts(node, disk)


def group_consumer(node, group):
    from confluent_kafka import Consumer

    settings = {"bootstrap.servers": node.server.bootstrap, "group.id": group, "enable.auto.commit": False}
    return Consumer({**settings, "logger": acknowledged.quiet_logger()})


def commit(node, group, offset):
    consumer = group_consumer(node, group)
    consumer.commit(offsets=[TopicPartition("t", 0, offset)], asynchronous=False)
    consumer.close()


def committed(node, group):
    consumer = group_consumer(node, group)
    try:
        return consumer.committed([TopicPartition("t", 0)], timeout=WAIT_SECONDS)[0].offset
    finally:
        consumer.close()


@case
def dead_disk(run):
    """The file system shuts down: every call fails. What groups have committed is there again after the repair."""
    disk, node, first, second = run.two()
    groups = [f"group-{number}" for number in range(GROUPS)]
    for group in groups:
        commit(node, group, 5)
    disk.die()
    code = node.produce("t", second[0], 1)
    run.check("the record is refused", [] if code == STORAGE_ERROR else [f"error {code}"])
    run.goes_on_with_the_first(node, first, second)
    harness.wait_for(lambda: -1 in node.leaders("__consumer_offsets").values(), "nobody leads the offsets there")
    run.restarts(node, disk)
    run.check("the groups' offsets are there", [f"{it}: {at}" for it in groups if (at := committed(node, it)) != 5])
    for group in groups:
        commit(node, group, 7)
    run.check("they commit again", [f"{it}: {at}" for it in groups if (at := committed(node, it)) != 7])


@case
def read_error(run):
    """What cannot be read harms its own partition alone, and only for as long as it cannot be read."""
    disk, node, first, second = run.two()
    hurt, other = second[0], second[-1]
    injected = fail(node, "preadv2,pread64", log_of(node.directories[1], hurt))
    code, _ = node.fetch("t", hurt)
    run.check("its reader is told", [] if code == STORAGE_ERROR else [f"error {code}"])
    rest = {("t", it) for it in (*first, *second) if it != hurt}
    run.check("the rest is read", node.lost(rest) + (["there is no rest"] if other == hurt else []))
    run.check("records are taken, its own too", [f"t-{it}: {code}" for it in (hurt, other) if (code := node.produce("t", it))])
    wrong = [] if node.metric("millstream_log_read_errors_total") >= 1 else ["the metric does not say so"]
    wrong += [] if node.said("the disk cannot read") else ["the log does not say so"]
    wrong += [] if node.metric("millstream_log_directories_offline") == 0 else ["the directory is offline"]
    run.check("it is told, and the directory stays", wrong)
    injected.stop()
    run.check("it is read again", node.lost({("t", hurt)}))
    run.restarts(node, disk)


@case
def read_only(run):
    """The kernel mounts the file system read-only: nothing is written there any more, reads go on."""
    disk, node, first, second = run.two()
    disk.become_read_only()
    run.check(
        "what lies there is refused", [f"t-{it}: {code}" for it in second if (code := node.produce("t", it, 1)) != STORAGE_ERROR]
    )
    leaders = node.leaders("t")
    run.check("all of it is led", [f"t-{it}: {leader}" for it, leader in leaders.items() if leader == -1])
    run.check("all of it is read", node.lost())
    run.check("the rest takes records", [f"t-{it}: {code}" for it in first if (code := node.produce("t", it))])
    run.new_partitions_lie_in_the_first(node, "after")
    wrong = [] if node.metric("millstream_log_directories_offline") == 1 else ["the metric does not say so"]
    run.check("it is told", wrong + ([] if node.said("takes no records any more") else ["the log does not say so"]))
    run.restarts(node, disk)


@case
def last_directory(run):
    """The only directory fails: the node ends and says why."""
    disk = run.disk()
    node = run.node([disk.mounted / "log"]).start()
    node.create("t", 2)
    node.produce("t", 0)
    node.produce("t", 1)
    injected = fail(node, "fdatasync", log_of(node.directories[0], 1))
    try:
        wrong = [] if node.produce("t", 1, 1) else ["the record is acknowledged"]
    except OSError:
        wrong = []
    wrong += node.ends_with_failure()
    injected.stop()
    run.check("the record is not acknowledged, and the node ends", wrong)
    run.check("it says why", [] if node.said(f"{node.directories[0]}, which holds the metadata log, has failed") else [node.server.log_tail()])
    disk.repair()
    node.start()
    run.check("nothing is lost after repair and restart", node.lost())
    run.no_panic(node)


@case
def metadata_directory(run):
    """The directory of the metadata log fails: the node ends, though it has another one."""
    disk, node, first, second = run.two()
    log = node.directories[0] / "__cluster_metadata-0" / f"{0:020}.log"
    injected = fail(node, "pwritev,pwritev2,pwrite64", log)
    wrong = node.ends_with_failure()
    injected.stop()
    run.check("the node ends", wrong)
    run.check("it says why", [] if node.said("which holds the metadata log, has failed") else [node.server.log_tail()])
    node.start()
    run.check("nothing is lost after a restart", node.lost())
    run.no_panic(node)


@case
def missing_at_start(run):
    """The second directory cannot be used when the node starts: the rest is served, and nothing is made anew."""
    disk, node, first, second = run.two()
    node.server.stop()
    disk.unmount()
    disk.mounted.rmdir()
    disk.mounted.write_text("no directory")
    node.start()
    run.check("the rest is read and takes records", node.lost({("t", it) for it in first}) + [f"t-{it}" for it in first if node.produce("t", it, 2)])
    leaders = node.leaders("t")
    run.check("nobody leads what lies there", [f"t-{it}: {leaders[it]}" for it in second if leaders[it] != -1])
    run.check(
        "it is refused, reads too",
        [f"t-{it}" for it in second if node.produce("t", it, 1) != STORAGE_ERROR or node.fetch("t", it)[0] != STORAGE_ERROR],
    )
    run.check("it is not made anew", [] if node.within(node.directories[0], "t") == first else ["it is"])
    run.new_partitions_lie_in_the_first(node, "after")
    wrong = [] if node.metric("millstream_log_directories_offline") == 1 else ["the metric does not say so"]
    run.check("it is told", wrong + ([] if node.said("cannot be used and is offline") else ["the log does not say so"]))
    disk.mounted.unlink()
    disk.mounted.mkdir()
    node.server.stop()
    disk.mount()
    node.start()
    run.check("all is there once the disk is back", node.lost())
    run.check("all takes records again", [f"t-{it}: {code}" for it in range(PARTITIONS) if (code := node.produce("t", it, 2))])
    run.no_panic(node)


@case
def not_mounted(run):
    """An empty folder stands where the disk was: the node does not start, as Kafka does not."""
    disk, node, first, second = run.two()
    node.server.stop()
    disk.unmount()
    run.check("the node does not start", node.refuses_to_start("has no meta.properties"))
    run.check("it leaves nothing there", [str(path) for path in disk.mounted.glob("*/*")])
    shutil.rmtree(node.directories[1], ignore_errors=True)
    disk.mount()
    node.start()
    run.check("nothing is lost once the disk is mounted", node.lost())


def properties(directory):
    lines = (directory / "meta.properties").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


def write_properties(directory, values):
    (directory / "meta.properties").write_text("#\n" + "".join(f"{key}={value}\n" for key, value in values.items()))


@case
def foreign_directories(run):
    """Directories of another cluster or node, and one that is there twice, stop the start."""
    disk, node, first, second = run.two()
    node.server.stop()
    own, other = properties(node.directories[1]), properties(node.directories[0])
    for name, change, text in [
        ("of another cluster", {"cluster.id": "AAAAAAAAQAqAAAAAAAAAAA"}, "belongs to cluster"),
        ("of another node", {"node.id": "7"}, "belongs to node 7"),
        ("that is there twice", {"directory.id": other["directory.id"]}, "is reserved or another directory's"),
    ]:
        write_properties(node.directories[1], {**own, **change})
        run.check(f"a directory {name} is refused", node.refuses_to_start(text))
    write_properties(node.directories[1], own)
    node.start()
    run.check("nothing is lost", node.lost())


@case
def other_directory_id(run):
    """The partitions of a failed directory are found in another one, whose id is new: they are led from there."""
    disk, node, first, second = run.two()
    node.server.stop()
    own = properties(node.directories[1])
    write_properties(node.directories[1], {**own, "directory.id": "Xhmg2cGWRmmcYdWSzLUqhg"})
    node.start()
    harness.wait_for(lambda: all(leader != -1 for leader in node.leaders("t").values()), "all of it is led")
    harness.wait_for(lambda: not any(node.fetch("t", it)[0] for it in second), "all of it is read")
    run.check("nothing is lost", node.lost())
    run.check("all takes records", [f"t-{it}: {code}" for it in range(PARTITIONS) if (code := node.produce("t", it, 2))])
    run.no_panic(node)


@case
def reserve(run):
    """On a full disk the reserve lets topics be deleted and the node be restarted; records are taken again by themselves."""
    disk = run.disk()
    node = run.node([disk.mounted / "log"], {"log.segment.delete.delay.ms": "60000"}).start()
    held = node.directories[0] / ".millstream_reserve"
    run.check("room is held back", [] if held.stat().st_blocks * 512 >= 3 << 20 else [f"{held.stat()}"])
    node.create("t", 1)
    node.create("u", 1)
    node.produce("t", 0)
    # Half of the disk, in records that are going to be deleted.
    filling = IMAGE_BYTES // 2
    connection = node.connection()
    block = wire.batch(b"." * 500_000)
    for _ in range(filling // len(block)):
        connection.produce("u", 0, block)
    stuffing = disk.mounted / "stuffing"
    room = os.statvfs(disk.mounted)
    call("fallocate", "-l", room.f_bavail * room.f_frsize - (1 << 20), stuffing)
    codes = set()
    while not codes:
        try:
            connection.produce("t", 0, block)
        except wire.Refused as refused:
            codes.add(refused.code)
    connection.close()
    run.check("records are refused clearly", [] if codes == {STORAGE_ERROR} else [f"{codes}"])
    run.check("the reserve is let go", [] if held.stat().st_blocks == 0 else ["it is held"])
    run.check("it is told", [] if node.metric("millstream_log_directories_full") == 1 else ["the metric does not say so"])
    # What the reserve leaves is not for records.
    run.check("small records are refused as well", [] if node.produce("t", 0, 1) == STORAGE_ERROR else ["they are taken"])
    run.check("reads go on", node.lost())
    try:
        node.create("v")
        run.check("new topics are refused", ["they are not"])
    except wire.Refused as refused:
        run.check("new topics are refused", [] if refused.code == STORAGE_ERROR else [f"error {refused.code}"])
    node.server.stop()
    node.start()
    run.check("a restart on the full disk works", node.lost())
    run.check("records are refused as before", [] if node.produce("t", 0, 1) == STORAGE_ERROR else ["they are taken"])
    node.server.kill()
    node.start()
    run.check("a start after kill -9 works", node.lost())
    connection = node.connection()
    connection.delete_topic("u")
    connection.close()
    harness.wait_for(lambda: node.produce("t", 0, 1) == 0, "records are taken again by themselves")
    run.check("the reserve is held again", [] if held.stat().st_blocks * 512 >= 3 << 20 else ["it is not"])
    run.check("it is told", [] if node.metric("millstream_log_directories_full") == 0 else ["the metric does not say so"])
    run.check("nothing is lost", node.lost())
    run.no_panic(node)


class FakeTime:
    """The wall clock of a node, moved while it runs; its monotonic clock goes on as it does."""

    def __init__(self, folder):
        self.file = folder / "faketime"
        library = next(iter(glob.glob("/usr/lib/*/faketime/libfaketime.so.1")), None)
        if library is None:
            raise RuntimeError("libfaketime is not there: apt-get install libfaketime")
        self.set(0)
        self.wrapper = [
            "env",
            f"LD_PRELOAD={library}",
            f"FAKETIME_TIMESTAMP_FILE={self.file}",
            "FAKETIME_NO_CACHE=1",
            "FAKETIME_DONT_FAKE_MONOTONIC=1",
            "DONT_FAKE_MONOTONIC=1",
        ]

    def set(self, seconds):
        temporary = self.file.with_suffix(".new")
        temporary.write_text(f"{seconds:+d}\n")
        temporary.rename(self.file)


@case
def clock_jumps(run):
    """The wall clock jumps: nothing is deleted by age for it, and groups and the node's own session go on."""
    clock = FakeTime(run.folder)
    settings = {"log.retention.check.interval.ms": "100", "log.initial.task.delay.ms": "0"}
    node = run.node([run.folder / "first"], settings, clock.wrapper).start()
    small = {"segment.bytes": "1048576"}
    node.create("aged", 1, {**small, "retention.ms": str(HOUR * 1000)})
    # Its oldest segment goes each time that retention has run.
    any_time = {"message.timestamp.after.max.ms": str(2**63 - 1)}
    node.create("witness", 1, {**small, **any_time, "retention.bytes": "1", "retention.ms": "-1"})
    block = wire.batch(b"." * 700_000)

    def retention_runs():
        connection = node.connection()
        connection.produce("witness", 0, block)
        end = connection.produce("witness", 0, block)
        connection.close()
        harness.wait_for(lambda: node.log_start("witness") >= end, "retention has run")

    connection = node.connection()
    for _ in range(3):
        connection.produce("aged", 0, block, 1)
    connection.close()
    node.produce("aged", 0)
    retention_runs()
    consumer, generation = member(node)
    for name, seconds in [("an hour ahead", HOUR), ("two days ahead", 48 * HOUR), ("two days back", -48 * HOUR), ("right", 0)]:
        clock.set(seconds)
        if seconds > 0:
            harness.wait_for(lambda: node.metric("millstream_clock_doubted_seconds") > seconds - 60, "the clock is doubted")
        retention_runs()
        retention_runs()
        start = node.log_start("aged")
        run.check(f"nothing is deleted when the clock is {name}", [] if start == 0 else [f"the log begins at {start}"])
        wrong = [] if generation() == 1 else ["the group has rebalanced"]
        wrong += [] if not node.said("fences a broker") else ["the broker's session has ended"]
        run.check(f"groups and sessions go on when the clock is {name}", wrong + node.lost())
    wrong = [] if node.metric("millstream_clock_doubted_seconds") == 0 else ["it is doubted"]
    run.check("a clock that is right again is believed", wrong)
    consumer.close()
    node.server.stop()


def member(node):
    """A member of a group that stays in it by its heartbeats, and how to ask for the group's generations so far."""
    from confluent_kafka import Consumer

    assignments = []
    consumer = Consumer(
        {
            "bootstrap.servers": node.server.bootstrap,
            "group.id": "watched",
            "session.timeout.ms": 10000,
            "heartbeat.interval.ms": 500,
            "logger": acknowledged.quiet_logger(),
        }
    )
    consumer.subscribe(["aged"], on_assign=lambda _, partitions: assignments.append(partitions))

    def generation():
        consumer.poll(0.1)
        return len(assignments)

    harness.wait_for(lambda: generation() == 1, "the member has its partitions")
    return consumer, generation


def produce_at(node, topic, when):
    """The error's code, 0 if there is none."""
    codes = []
    producer = Producer(
        {"bootstrap.servers": node.server.bootstrap, "retries": 0, "logger": acknowledged.quiet_logger()}
    )
    told = lambda error, _: codes.append(0 if error is None else error.code())  # noqa: E731
    producer.produce(topic, b"." * 700_000, timestamp=int(when * 1000), on_delivery=told)
    producer.flush(WAIT_SECONDS)
    return codes[0]


@case
def future_timestamps(run):
    """Times in the future are refused, unless a topic allows them; then they keep segments, but not in silence."""
    settings = {"log.retention.check.interval.ms": "100", "log.initial.task.delay.ms": "0"}
    node = run.node([run.folder / "first"], settings).start()
    configs = {"segment.bytes": "1048576", "retention.ms": "-1"}
    node.create("t", 1, configs)
    code = produce_at(node, "t", time.time() + 2 * HOUR)
    run.check("two hours ahead is refused", [] if code == INVALID_TIMESTAMP else [f"error {code}"])
    code = produce_at(node, "t", time.time() + HOUR / 2)
    run.check("half an hour ahead is taken", [] if code == 0 else [f"error {code}"])
    node.create("u", 1, {**configs, "message.timestamp.after.max.ms": str(2**63 - 1)})
    code = produce_at(node, "u", time.time() + 1000 * 24 * HOUR)
    run.check("a topic may allow any time", [] if code == 0 else [f"error {code}"])
    for _ in range(3):
        produce_at(node, "u", time.time() - 24 * HOUR)
    node.configure("u", {"retention.ms": str(HOUR * 1000)})
    harness.wait_for(lambda: node.metric("millstream_retention_future_segments") == 1, "the segment that stays is told of")
    run.check("it stays for as long as its time is allowed", [] if node.log_start("u") == 0 else ["it is gone"])
    run.check("the log tells of it", [] if node.said("their records' times lie in the future") else ["it does not"])
    node.configure("u", {"message.timestamp.after.max.ms": None})
    harness.wait_for(lambda: node.log_start("u") > 0, "it goes with the segments behind it")
    harness.wait_for(lambda: node.metric("millstream_retention_future_segments") == 0, "nothing is told of any more")
    node.server.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(CASES), help="case,case")
    options = parser.parse_args()
    names = options.only.split(",")
    unknown = [name for name in names if name not in CASES]
    if unknown:
        print(f"there is no case {', '.join(unknown)}; there are {', '.join(CASES)}")
        return 2
    if os.geteuid() != 0:
        print("disk-faults needs root: it mounts file systems")
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    folder = pathlib.Path(tempfile.mkdtemp(prefix="millstream-disk-faults-"))
    call("mount", "-t", "tmpfs", "-o", "size=1g", "tmpfs", folder)
    run = Run(folder)
    try:
        for name in names:
            run.case = name
            begun = time.monotonic()
            at = len(run.checks)
            try:
                CASES[name](run)
            except (harness.ServerError, KafkaException, OSError, RuntimeError, subprocess.CalledProcessError) as error:
                run.check("runs to its end", [f"{type(error).__name__}: {error}"])
            if not all(run.checks[at:]):
                for node in run.nodes:
                    print(node.server.log_tail())
            print(f"{name}: {time.monotonic() - begun:.0f} s", flush=True)
            run.clean()
    finally:
        run.clean()
        subprocess.run(["umount", "-l", folder], check=False)
        shutil.rmtree(folder, ignore_errors=True)
    failed = sum(not good for good in run.checks)
    print(f"{len(run.checks) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
