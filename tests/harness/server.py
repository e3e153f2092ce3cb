"""Starts a server under test on free ports, waits until it answers, and ends it by its process id.

`Millstream` runs the binary of this checkout, `Kafka` the peer, `Remote` takes one that runs already. A suite sees only
`bootstrap` and, where it looks at files, `log_directory`. Standard library only.

By hand: server.py start DIR [KEY=VALUE...] runs in the foreground, prints the bootstrap address, and ends with it.
"""

import ctypes
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import time

import slow_sync

TESTS = pathlib.Path(__file__).resolve().parent.parent
ROOT = TESTS.parent
READY_SECONDS_MAX = 120
STOP_SECONDS_MAX = 120
ASK_AGAIN_SECONDS = 0.02

# What every suite runs with: groups form at once, retention is looked at often, few partitions of internal topics.
TEST_SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "log.retention.check.interval.ms": "1000",
    "log.segment.delete.delay.ms": "1000",
    "offsets.topic.num.partitions": "4",
}


class ServerError(Exception):
    """The server did not do what its life cycle asks of it."""


def free_ports(count):
    """Ports that nobody listens on; all are held until all are known, so that they differ."""
    sockets = []
    try:
        for _ in range(count):
            held = socket.socket()
            held.bind(("127.0.0.1", 0))
            sockets.append(held)
        return [held.getsockname()[1] for held in sockets]
    finally:
        for held in sockets:
            held.close()


def binary():
    """The program under test: $MILLSTREAM, else this checkout's release build."""
    named = os.environ.get("MILLSTREAM")
    if named:
        return pathlib.Path(named)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return target / "release" / "millstream"


def use_venv():
    """Runs the calling script again under the Python that has the client libraries, if this one is not it."""
    python = TESTS / ".cache" / "venv" / "bin" / "python"
    if pathlib.Path(sys.prefix) == python.parent.parent:
        return
    if not python.exists():
        subprocess.run([TESTS / "setup", "packages", "python"], check=True)
    os.execv(python, [str(python), *sys.argv])


def _terminated(_signal, _frame):
    sys.exit(128 + signal.SIGTERM)


def _die_with_parent():
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def _exchange(address, api_key, version, body, timeout=5.0):
    """One request with a version 1 header; the response without its correlation id."""
    client_id = b"harness"
    head = struct.pack(">hhih", api_key, version, 1, len(client_id)) + client_id
    with socket.create_connection(address, timeout=timeout) as connection:
        connection.sendall(struct.pack(">i", len(head) + len(body)) + head + body)
        size = struct.unpack(">i", _read(connection, 4))[0]
        return _read(connection, size)[4:]


def _read(connection, size):
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise OSError("the connection was closed")
        data += part
    return data


def answers(host, port):
    """Whether a broker there answers ApiVersions without error, and Metadata with at least one broker."""
    try:
        versions = _exchange((host, port), 18, 0, b"")
        if struct.unpack(">h", versions[:2])[0] != 0:
            return False
        no_topics = struct.pack(">i", 0)
        brokers = struct.unpack(">i", _exchange((host, port), 3, 1, no_topics)[:4])[0]
        return brokers >= 1
    except (OSError, struct.error):
        return False


def wait_for(holds, what, seconds=60):
    """Asks until the answer is yes."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise ServerError(f"{what}: not so after {seconds} s")
        time.sleep(ASK_AGAIN_SECONDS)


class Millstream:
    """One node with data in `directory`; the same ports for as long as the object lives, however often it starts."""

    name = "millstream"
    # By how much each sync of it takes longer.
    slow_sync_ms = 0

    def __init__(self, directory, settings=None, wrapper=()):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.data_directory = self.directory / "data"
        self.log_directory = self.data_directory / "log"
        self.log_file = self.directory / "server.log"
        self.settings = {**TEST_SETTINGS, **(settings or {})}
        self.wrapper = list(wrapper)
        self.port, self.controller_port, self.http_port = free_ports(3)
        self.bootstrap = f"127.0.0.1:{self.port}"
        self.http = f"http://127.0.0.1:{self.http_port}"
        self.process = None

    def command(self):
        listeners = f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self.controller_port}"
        settings = {
            "listeners": listeners,
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "millstream.http.listeners": f"http://127.0.0.1:{self.http_port}",
            **self.settings,
        }
        command = [*self.wrapper, str(binary()), "serve", "--data-dir", str(self.data_directory)]
        for key, value in settings.items():
            command += ["--set", f"{key}={value}"]
        return command

    def start(self):
        if not binary().exists():
            raise ServerError(f"there is no {binary()}: cargo build --release --package millstream")
        with open(self.log_file, "ab") as log:
            self.process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=_die_with_parent,
                env=environment_of(self),
            )  # fmt: skip
        self.wait_ready()
        check_slow_sync(self)
        return self

    def wait_ready(self):
        deadline = time.monotonic() + READY_SECONDS_MAX
        while not answers("127.0.0.1", self.port):
            if self.process.poll() is not None:
                raise ServerError(f"the server ended with {self.process.returncode}:\n{self.log_tail()}")
            if time.monotonic() > deadline:
                raise ServerError(f"the server did not answer within {READY_SECONDS_MAX} s:\n{self.log_tail()}")
            time.sleep(ASK_AGAIN_SECONDS)

    def stop(self):
        """A clean stop; the server must end by itself and with success."""
        if self.process is None:
            return
        process, self.process = self.process, None
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            code = process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise ServerError(f"the server did not stop within {STOP_SECONDS_MAX} s:\n{self.log_tail()}") from None
        if code not in (0, -signal.SIGTERM):
            raise ServerError(f"the server ended with {code}:\n{self.log_tail()}")

    def kill(self):
        """kill -9, and wait until it is gone."""
        if self.process is None:
            return
        process, self.process = self.process, None
        process.kill()
        process.wait()

    def process_id(self):
        return self.process.pid

    def log_tail(self, lines=40):
        try:
            return "\n".join(self.log_file.read_text(errors="replace").splitlines()[-lines:])
        except OSError:
            return ""


class Kafka:
    """The peer: Apache Kafka 4.4.0, one node."""

    name = "kafka"
    http = None
    slow_sync_ms = 0

    def __init__(self, directory, settings=None):
        self.directory = pathlib.Path(directory)
        self.log_directory = self.directory / "data"
        self.log_file = self.directory / "server.log"
        self.settings = {**TEST_SETTINGS, **(settings or {})}
        self.script = TESTS / "peers" / "kafka" / "broker"
        while True:
            # The controller takes the port after the broker's.
            self.port = free_ports(1)[0]
            with socket.socket() as next_port:
                try:
                    next_port.bind(("127.0.0.1", self.port + 1))
                    break
                except OSError:
                    continue
        self.bootstrap = f"127.0.0.1:{self.port}"

    def start(self):
        settings = [f"{key}={value}" for key, value in self.settings.items()]
        command = [self.script, "start", str(self.port), str(self.directory), *settings]
        subprocess.run(command, check=True, env=environment_of(self))
        check_slow_sync(self)
        return self

    def stop(self):
        subprocess.run([self.script, "stop", str(self.directory)], check=True)

    def kill(self):
        subprocess.run([self.script, "kill", str(self.directory)], check=True)

    def process_id(self):
        return int((self.directory / "pid").read_text())

    def log_tail(self, lines=40):
        return "\n".join(self.log_file.read_text(errors="replace").splitlines()[-lines:])


def environment_of(server):
    return {**os.environ, **slow_sync.environment(server.slow_sync_ms)}


def check_slow_sync(server):
    """So that no figure is taken for one with slow syncs that is not."""
    if server.slow_sync_ms and not slow_sync.is_in(server.process_id()):
        server.kill()
        raise ServerError(f"{server.name} runs without {slow_sync.LIBRARY.name}")


class Remote:
    """A server that somebody else has started. Its files are not ours to look at."""

    name = "remote"
    log_directory = None
    http = None

    def __init__(self, bootstrap):
        self.bootstrap = bootstrap
        self.port = int(bootstrap.rsplit(":", 1)[1])

    def start(self):
        if not answers(self.bootstrap.rsplit(":", 1)[0], self.port):
            raise ServerError(f"nobody answers at {self.bootstrap}")
        return self

    def stop(self):
        pass

    kill = stop

    def log_tail(self, lines=40):
        return ""


def make(kind, directory, settings=None):
    """`millstream`, `kafka` or HOST:PORT. From here on a SIGTERM unwinds, so that what was started is ended."""
    signal.signal(signal.SIGTERM, _terminated)
    if kind == "millstream":
        return Millstream(directory, settings)
    if kind == "kafka":
        return Kafka(directory, settings)
    return Remote(kind)


def main(arguments):
    if len(arguments) < 2 or arguments[0] != "start":
        print(__doc__, file=sys.stderr)
        return 2
    settings = dict(pair.split("=", 1) for pair in arguments[2:])
    server = Millstream(arguments[1], settings).start()
    print(server.bootstrap, flush=True)
    try:
        return server.process.wait()
    except KeyboardInterrupt:
        server.stop()
        return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
