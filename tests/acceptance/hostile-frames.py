#!/usr/bin/env python3
"""Hostile frames at both doors of the Kafka protocol: the node goes on, takes little memory for it, and says no wrong word.

First every request of every version as Kafka's own classes write it, which must have an answer that can be encoded; then
mutations of them: lengths and counts out of bounds, bytes changed, left out and put in. After that the node still creates
a topic, takes a record and gives it back, and the peak of its memory has grown by at most 32 MiB.

    hostile-frames.py [--frames N] [--seed N] [--set KEY=VALUE]
"""

import argparse
import pathlib
import random
import shutil
import socket
import struct
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "harness"))
import server as harness  # noqa: E402

harness.use_venv()

import hostile  # noqa: E402

GOLDEN = harness.ROOT / "server" / "protocol" / "golden"
FRAMES = 10_000
ANSWER_SECONDS = 0.02
MUTATIONS_MAX = 3
# -1, 2^31 - 1 and their like, as int32, int16 and as varints.
BOUNDS = [bytes.fromhex(text) for text in ("ffffffff", "7fffffff", "80000000", "7fff", "ffff", "ffffffff0f", "ffffffff07")]


def requests():
    """Name, version and body of every request that the golden bytes hold, and each API's code and header versions."""
    apis = {}
    for line in (GOLDEN / "apis.txt").read_text().splitlines():
        code, name, first, _, _, _, headers, _ = line.split()
        apis[name] = int(code), int(first), [int(version) for version in headers.split(",")]
    found = []
    for line in (GOLDEN / "messages.txt").read_text().splitlines():
        words = line.split()
        if len(words) != 5 or not words[1].endswith("Request") or words[1][: -len("Request")] not in apis:
            continue
        try:
            body = bytes.fromhex(words[4])
        except ValueError:
            continue  # Kafka refuses to write this one.
        found.append((words[1][: -len("Request")], int(words[2]), body))
    return apis, found


def frame(apis, name, version, body):
    code, first, headers = apis[name]
    tags = b"\0" if headers[version - first] == 2 else b""
    return struct.pack(">hhih", code, version, 1, 2) + b"me" + tags + body


def mutated(body, chance):
    body = bytearray(body)
    for _ in range(chance.randint(1, MUTATIONS_MAX)):
        if not body:
            break
        at = chance.randrange(len(body))
        kind = chance.randrange(4)
        if kind == 0:
            body[at] = chance.randrange(256)
        elif kind == 1:
            bound = chance.choice(BOUNDS)
            body[at : at + len(bound)] = bound
        elif kind == 2:
            del body[at : at + chance.randint(1, 8)]
        else:
            body[at:at] = bytes(chance.randrange(256) for _ in range(chance.randint(1, 8)))
    return bytes(body)


def send(port, payload):
    """Sends one frame on a connection of its own; whether an answer or an end comes is the node's choice."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.settimeout(ANSWER_SECONDS)
        try:
            connection.sendall(struct.pack(">i", len(payload)) + payload)
            connection.recv(100)
        except OSError:
            pass


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=FRAMES)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    chance = random.Random(options.seed)
    apis, golden = requests()
    directory = tempfile.mkdtemp(prefix="hostile-frames-")
    server = harness.make("millstream", directory, dict(pair.split("=", 1) for pair in options.set))
    checks = []
    try:
        server.start()
        ports = [int(server.bootstrap.rsplit(":", 1)[1]), server.controller_port]
        before = hostile.memory_kib(server.process_id(), "VmRSS")
        for port in ports:
            for name, version, body in golden:
                send(port, frame(apis, name, version, body))
            for _ in range(options.frames):
                name, version, body = chance.choice(golden)
                send(port, frame(apis, name, version, mutated(body, chance)))
        grown = hostile.memory_kib(server.process_id(), "VmHWM") - before
        print(f"{len(golden)} requests and {options.frames} mutations a door, memory grew by {grown} KiB")
        checks.append(("memory_is_bounded", grown <= hostile.GROWTH_KIB_MAX))
        checks.append(("the_node_goes_on", hostile.serves(server.bootstrap)))
        log = server.log_tail(100_000)
        checks.append(("no_panic", "panicked" not in log))
        checks.append(("every_answer_can_be_encoded", "cannot be encoded" not in log))
    finally:
        server.stop()
        shutil.rmtree(directory, ignore_errors=True)
    for name, good in checks:
        print(f"{'ok' if good else 'FAILED'} {name}")
    failed = sum(not good for _, good in checks)
    print(f"{len(checks) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
