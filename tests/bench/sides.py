"""The brokers that are compared, each in a fresh directory, and how long one takes from its start to its first answer.

All run with their defaults, but for what a side's name says and the wait before a group's first assignment, which would
only lengthen the run.
"""

import dataclasses
import os
import socket
import subprocess
import sys
import threading
import time
import pathlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "harness"))
import server as harness  # noqa: E402

import measure  # noqa: E402

SETTINGS = {"group.initial.rebalance.delay.ms": "0"}
READY_SECONDS_MAX = 120
ASK_AGAIN_SECONDS = 0.001


@dataclasses.dataclass(frozen=True)
class Side:
    key: str
    title: str
    settings: tuple = ()
    kind: str = "millstream"

    @property
    def ours(self):
        return self.kind == "millstream"


FSYNC = Side("fsync", "Millstream, fsync")
REPLICATED = Side("replicated", "Millstream, replicated", (("millstream.acks.durability", "replicated"),))
KAFKA_FSYNC = Side("kafka-fsync", "Kafka, fsync", (("log.flush.interval.messages", "1"),), kind="kafka")
KAFKA = Side("kafka", "Kafka, page cache", kind="kafka")
SIDES = (FSYNC, REPLICATED, KAFKA_FSYNC, KAFKA)
# No brokers: floor/floor.rs receives and writes, reads and sends, and does nothing else.
FLOOR_FSYNC = Side("floor-fsync", "floor, fsync", (("mode", "fsync"),), kind="floor")
FLOOR = Side("floor", "floor", (("mode", "none"),), kind="floor")
FLOORS = (FLOOR_FSYNC, FLOOR)
# No server either: log/main.rs, by itself.
LOG = Side("log", "log alone", kind="log")
FLOOR_PROGRAM = harness.TESTS / ".cache" / "floor"


@dataclasses.dataclass(frozen=True)
class Ready:
    """Milliseconds from the process's beginning to the first success at a door; `http` only where there is one."""

    kafka_ms: float
    http_ms: float | None


class TimedMillstream(harness.Millstream):
    """An empty directory is formatted by the start itself, so that belongs to the time."""

    def start(self):
        self.began = measure.now()
        return super().start()

    def wait_ready(self):
        self.ready = first_answers(self, self.began)

    def ended(self):
        return self.process.poll() is not None


class TimedKafka(harness.Kafka):
    """The directory is formatted before by Kafka's own tool; the start finds it empty but for that."""

    def start(self):
        settings = [f"{key}={value}" for key, value in self.settings.items()]
        script, port, directory = str(self.script), str(self.port), str(self.directory)
        subprocess.run([script, "format", port, directory, *settings], check=True)
        environment = {**harness.environment_of(self), "NO_WAIT": "1"}
        subprocess.run([script, "start", port, directory, *settings], check=True, env=environment)
        self.ready = first_answers(self, measure.started_at(self.process_id()))
        harness.check_slow_sync(self)
        return self

    def ended(self):
        return not os.path.exists(f"/proc/{self.process_id()}")


class Floor(harness.Millstream):
    """Has no HTTP door, no settings but its mode, and no topics to create; ends by its process id."""

    name = "floor"

    def __init__(self, directory):
        super().__init__(directory)
        self.http = None

    def command(self):
        return [str(FLOOR_PROGRAM), str(self.port), str(self.log_directory), self.settings["mode"]]

    def stop(self):
        self.kill()


def build_floor():
    """By rustc alone, as it has no dependencies; some seconds."""
    source = pathlib.Path(__file__).resolve().parent / "floor" / "floor.rs"
    command = ["rustc", "--edition", "2024", "-C", "opt-level=3", "-o", FLOOR_PROGRAM, source]
    subprocess.run(command, check=True, cwd=harness.ROOT)


def start(side, directory, slow_sync_ms=0):
    """A running server of that side, with `ready` where it is a broker; each of its syncs takes so much longer."""
    kind = {"millstream": TimedMillstream, "kafka": TimedKafka, "floor": Floor}[side.kind]
    server = kind(directory)
    server.settings = {**SETTINGS, **dict(side.settings)}
    server.slow_sync_ms = slow_sync_ms
    try:
        return server.start()
    except BaseException:
        server.kill()
        raise


def first_answers(server, began):
    """Asks both doors at once, each until it answers."""
    found = {}

    def ask(name, holds):
        deadline = time.monotonic() + READY_SECONDS_MAX
        while not holds():
            if server.ended() or time.monotonic() > deadline:
                return
            time.sleep(ASK_AGAIN_SECONDS)
        found[name] = (measure.now() - began) * 1000

    doors = {"kafka_ms": lambda: harness.answers("127.0.0.1", server.port)}
    if server.http is not None:
        doors["http_ms"] = lambda: healthy(server.http_port)
    askers = [threading.Thread(target=ask, args=door) for door in doors.items()]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    if len(found) < len(doors):
        raise harness.ServerError(f"{server.name} did not become ready:\n{server.log_tail()}")
    return Ready(found["kafka_ms"], found.get("http_ms"))


def healthy(port):
    request = f"GET /health/ready HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\n\r\n"
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            connection.sendall(request.encode())
            return connection.makefile("rb").readline().split()[1:2] == [b"200"]
    except OSError:
        return False
