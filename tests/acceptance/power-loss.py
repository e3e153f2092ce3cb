#!/usr/bin/env python3
"""Loss of power under load, again and again: every acknowledged record is there, once, at its acknowledged offset.

The data lies on an ext4 file system in an image file, mounted so that it commits only what it is told to sync. A round
stops the server in the middle of the load (SIGSTOP), copies the image, and goes on from the copy: what the first kernel
still had in its page cache is not in it. Every round starts from the copy of the round before. Needs root.

    power-loss.py [--rounds 20] [--seed N] [--server millstream|kafka] [--set KEY=VALUE]

Against Kafka it fails, as it should, unless the server is told log.flush.interval.messages=1.
"""

import argparse
import contextlib
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "harness"))
import server as harness  # noqa: E402

harness.use_venv()
import acknowledged  # noqa: E402

TOPIC = "power-loss"
PARTITIONS = 3
IMAGE_MEBIBYTES = 768
RECORDS_PER_ROUND_MAX = 3000
SHOWN_MAX = 20


def call(*words):
    subprocess.run([str(word) for word in words], check=True, stdout=subprocess.DEVNULL)


class Disk:
    """An image file that is mounted; `cut` gives what its medium holds at this moment as another one."""

    def __init__(self, folder, number, image=None):
        self.folder = folder
        self.number = number
        self.image = folder / f"{number}.img"
        self.mounted = folder / f"{number}"
        self.mounted.mkdir()
        if image is None:
            with open(self.image, "wb") as file:
                file.truncate(IMAGE_MEBIBYTES << 20)
            call("mkfs.ext4", "-q", "-F", self.image)
        else:
            call("cp", "--sparse=always", image, self.image)
        call("mount", "-o", "loop,commit=600", self.image, self.mounted)

    def cut(self):
        return Disk(self.folder, self.number + 1, self.image)

    def remove(self):
        subprocess.run(["umount", self.mounted], check=False, stderr=subprocess.DEVNULL)
        self.image.unlink(missing_ok=True)


def rounds(options, disks, dice):
    disk = disks.enter(Disk(disks.folder, 0))
    settings = dict(pair.split("=", 1) for pair in options.set)
    expected = {}
    wrong = []
    first = 0
    for number in range(options.rounds + 1):
        server = harness.make(options.server, disk.mounted / "node", settings)
        try:
            server.start()
            if number == 0:
                acknowledged.create_topic(server.bootstrap, TOPIC, PARTITIONS, {"segment.bytes": str(1 << 20)})
            else:
                found = acknowledged.read_all(server.bootstrap, TOPIC, PARTITIONS)
                wrong += [f"round {number}: {line}" for line in acknowledged.differences(expected, found)]
                print(f"round {number}: {len(expected)} acknowledged, {sum(map(len, found.values()))} read", flush=True)
            if wrong or number == options.rounds:
                return wrong
            workload = acknowledged.Workload(server.bootstrap, TOPIC, first)
            if not workload.wait_acknowledged(dice.randint(1, RECORDS_PER_ROUND_MAX)):
                return [f"round {number}: no progress: {workload.errors[:3]}"]
            os.kill(server.process_id(), signal.SIGSTOP)
            following = disks.enter(disk.cut())
            server.kill()
            workload.abandon()
            expected.update(workload.acknowledged)
            first = workload.next
        except harness.ServerError as error:
            return [*wrong, f"round {number}: {error}"]
        finally:
            server.kill()
        disks.leave(disk)
        disk = following
    return wrong


class Disks:
    """Where the images are; takes care that none stays mounted."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="millstream-power-"))
        self._open = []
        call("mount", "-t", "tmpfs", "-o", "size=3g", "tmpfs", self.folder)

    def enter(self, disk):
        self._open.append(disk)
        return disk

    def leave(self, disk):
        self._open.remove(disk)
        disk.remove()

    def close(self):
        for disk in list(self._open):
            self.leave(disk)
        subprocess.run(["umount", "-l", self.folder], check=False)
        shutil.rmtree(self.folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--server", default="millstream", choices=["millstream", "kafka"])
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("power-loss needs root: it mounts file systems")
        return 2
    print(f"seed {options.seed}", flush=True)
    with contextlib.closing(Disks()) as disks:
        wrong = rounds(options, disks, random.Random(options.seed))
    for line in wrong[:SHOWN_MAX]:
        print(f"wrong: {line}")
    print(f"{0 if wrong else options.rounds} passed, {1 if wrong else 0} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
