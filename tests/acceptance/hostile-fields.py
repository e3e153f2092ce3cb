#!/usr/bin/env python3
"""Every length and count field of every advertised request lies, at both doors of the Kafka protocol.

What is advertised is what ApiVersions says at each door. For each such API and version, each length and count that the
schema has, in header, body, arrays of arrays and tagged fields, is set to -1, 2³¹ - 1 and one more than what is left; for
Produce also each in the header and the records of whole batches, under every codec, into a topic that is cleaned by time
and one that is compacted. The frame's own length is right, but for a few frames where it is what lies.

A request behind each frame on the same connection shows that the node comes to an end with it: an answer, then the answer
to that request, or a close. The peak of the node's memory grows by at most 32 MiB, and records written before are all
there afterwards, and after a restart.

    hostile-fields.py [--door broker|controller] [--set KEY=VALUE]
"""

import argparse
import collections
import concurrent.futures
import pathlib
import shutil
import socket
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "harness"))
import server as harness  # noqa: E402

harness.use_venv()

import hostile  # noqa: E402

PRODUCE, API_VERSIONS = 0, 18
GENERATOR = ["cargo", "run", "--quiet", "--package", "protocol", "--example", "hostile_fields", "--"]
# Ample, and only there so that a hang becomes a failure.
END_SECONDS_MAX = 30
CONNECTIONS = 8
PROBE_ID = 0x7E57
KNOWN = 1000
TOPICS = {"hostile-delete": {}, "hostile-compact": {"cleanup.policy": "compact"}}
SHOWN_MAX = 20

Frame = collections.namedtuple("Frame", "api_key version what payload")


def receive(connection, size):
    """Exactly so many bytes, or fewer where the connection ends."""
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            break
        data += part
    return data


def request(api_key, version, correlation_id, body=b""):
    payload = struct.pack(">hhih", api_key, version, correlation_id, 5) + b"probe" + body
    return struct.pack(">i", len(payload)) + payload


def advertised(port):
    """API key → its first and last version, as the door says."""
    with socket.create_connection(("127.0.0.1", port), timeout=END_SECONDS_MAX) as connection:
        connection.sendall(request(API_VERSIONS, 0, 1))
        answer = receive(connection, struct.unpack(">i", receive(connection, 4))[0])
    _, error, count = struct.unpack(">ihi", answer[:10])
    if error != 0:
        raise RuntimeError(f"ApiVersions at port {port}: error {error}")
    rows = (struct.unpack(">hhh", answer[10 + 6 * row : 16 + 6 * row]) for row in range(count))
    return {api_key: (first, last) for api_key, first, last in rows}


def generated(topics):
    words = [*GENERATOR, *(f"{name}={topic_id}" for name, topic_id in topics.items())]
    printed = subprocess.run(words, cwd=harness.ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    for line in printed.splitlines():
        api_key, version, what, payload = line.split(" ")
        yield Frame(int(api_key), int(version), what, bytes.fromhex(payload))


def without_schema(pairs, frames):
    """Old clients want Produce to be advertised from version 0 on, which no message has any more: those versions get the
    frames of the first that has one."""
    first = min(frame.version for frame in frames if frame.api_key == PRODUCE)
    old = [version for key, version in pairs if key == PRODUCE and version < first]
    return [
        frame._replace(version=version, payload=frame.payload[:2] + struct.pack(">h", version) + frame.payload[4:])
        for version in old
        for frame in frames
        if (frame.api_key, frame.version) == (PRODUCE, first)
    ]


def outcome(port, frame):
    """How the node ended with the frame: `answered`, `closed`, or what is wrong."""
    sent = struct.pack(">i", len(frame.payload)) + frame.payload + request(API_VERSIONS, 0, PROBE_ID)
    with socket.create_connection(("127.0.0.1", port), timeout=END_SECONDS_MAX) as connection:
        try:
            connection.sendall(sent)
            answers = []
            while PROBE_ID not in answers:
                size = receive(connection, 4)
                if len(size) < 4:
                    return "closed" if not answers else f"closed after answers {answers}"
                answer = receive(connection, struct.unpack(">i", size)[0])
                answers.append(struct.unpack(">i", answer[:4])[0])
            return "answered" if answers == [1, PROBE_ID] else f"answers {answers}"
        except TimeoutError:
            return f"neither answer nor close within {END_SECONDS_MAX} s"
        except ConnectionError:
            return "closed"


def frame_lengths(port):
    """The frame's own length lies: the node closes, at the latest when no more bytes come."""
    honest = request(API_VERSIONS, 0, 1)[4:]
    wrong = []
    for length in (-1, 0, 2**31 - 1, len(honest) + 1):
        with socket.create_connection(("127.0.0.1", port), timeout=END_SECONDS_MAX) as connection:
            connection.sendall(struct.pack(">i", length) + honest)
            try:
                connection.shutdown(socket.SHUT_WR)
                if receive(connection, 1):
                    wrong.append(f"frame length {length} was answered")
            except TimeoutError:
                wrong.append(f"frame length {length}: not closed within {END_SECONDS_MAX} s")
            except OSError:
                pass
    return wrong


def send_all(port, frames):
    """Counts by outcome, and a line for each that is wrong."""
    counts, wrong = collections.Counter(), []
    with concurrent.futures.ThreadPoolExecutor(CONNECTIONS) as pool:
        for frame, ended in zip(frames, pool.map(lambda frame: outcome(port, frame), frames)):
            counts[ended if ended in ("answered", "closed") else "wrong"] += 1
            if ended not in ("answered", "closed"):
                wrong.append(f"API {frame.api_key} version {frame.version} {frame.what}: {ended}")
    return counts, wrong


class Run:
    def __init__(self, server, doors):
        self.server = server
        self.doors = doors
        self.checks = []

    def check(self, name, wrong):
        """`wrong` lists what is so; empty is good."""
        for line in wrong[:SHOWN_MAX]:
            print(f"  {line}")
        print(f"{'FAILED' if wrong else 'ok'} {name}", flush=True)
        self.checks.append(not wrong)

    def all_of_it(self):
        bootstrap = self.server.bootstrap
        known_topic = "known"
        hostile.create_topic(bootstrap, known_topic)
        known = hostile.produce(bootstrap, known_topic, [f"record {number}".encode() for number in range(KNOWN)])
        self.check("records_are_acknowledged_before", [] if len(known) == KNOWN else [f"{len(known)} of {KNOWN}"])
        topics = {name: hostile.create_topic(bootstrap, name, configs) for name, configs in TOPICS.items()}
        frames = list(generated(topics))
        self.honest_batches_are_taken([frame for frame in frames if frame.what.endswith("honest")])
        lies = [frame for frame in frames if not frame.what.endswith("honest")]
        before = hostile.memory_kib(self.server.process_id(), "VmRSS")
        for door in self.doors:
            self.door(door, lies)
        grown = hostile.memory_kib(self.server.process_id(), "VmHWM") - before
        print(f"the peak of memory grew by {grown} KiB")
        self.check("memory_is_bounded", [] if grown <= hostile.GROWTH_KIB_MAX else [f"{grown} KiB"])
        self.check("the_node_goes_on", [] if hostile.serves(bootstrap) else ["it does not serve"])
        self.check("nothing_is_lost", self.lost(known_topic, known))
        log = self.server.log_tail(1_000_000).splitlines()
        self.check("no_panic", [line for line in log if "panicked" in line])
        self.check("every_answer_can_be_encoded", [line for line in log if "cannot be encoded" in line])
        self.server.stop()
        self.server.start()
        self.check("nothing_is_lost_after_a_restart", self.lost(known_topic, known))

    def honest_batches_are_taken(self, frames):
        """Else the hostile ones would be refused for another reason than their lies."""
        port = self.server.port
        served = advertised(port)[PRODUCE]
        frames = [frame for frame in frames if served[0] <= frame.version <= served[1]]
        _, wrong = send_all(port, frames)
        for topic in TOPICS:
            batches = sum(frame.what.startswith(f"{topic}:") for frame in frames)
            end = hostile.end_offset(self.server.bootstrap, topic)
            if end != 2 * batches or batches == 0:
                wrong.append(f"{topic} ends at {end} after {batches} batches of 2 records")
        self.check("honest_batches_are_taken", wrong)

    def door(self, door, frames):
        port = self.server.port if door == "broker" else self.server.controller_port
        versions = advertised(port)
        pairs = {(key, version) for key, (first, last) in versions.items() for version in range(first, last + 1)}
        mine = [frame for frame in frames if (frame.api_key, frame.version) in pairs]
        mine += without_schema(pairs, frames)
        without = pairs - {(frame.api_key, frame.version) for frame in mine}
        lacking = [f"API {key} version {version}" for key, version in sorted(without)]
        self.check(f"every_version_of_the_{door}_has_frames", lacking)
        counts, wrong = send_all(port, mine)
        words = ", ".join(f"{count} {ended}" for ended, count in sorted(counts.items()))
        print(f"{door}: {len(versions)} APIs in {len(pairs)} versions, {len(mine)} frames: {words}", flush=True)
        self.check(f"the_{door}_comes_to_an_end_with_every_frame", wrong)
        self.check(f"the_{door}_refuses_lengths_of_frames", frame_lengths(port))

    def lost(self, topic, known):
        found = hostile.read(self.server.bootstrap, topic, len(known))
        changed = [offset for offset, value in known.items() if found.get(offset) != value]
        return [f"offset {offset}: {known[offset]} became {found.get(offset)}" for offset in changed]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--door", choices=["broker", "controller"])
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    directory = tempfile.mkdtemp(prefix="hostile-fields-")
    server = harness.make("millstream", directory, dict(pair.split("=", 1) for pair in options.set))
    run = Run(server, [options.door] if options.door else ["broker", "controller"])
    try:
        server.start()
        run.all_of_it()
        server.stop()
    finally:
        server.kill()
        shutil.rmtree(directory, ignore_errors=True)
    failed = sum(not good for good in run.checks)
    print(f"{len(run.checks) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
