#!/usr/bin/env python3
"""An answer to acks=all leaves only after its batch is on disk, as strace sees it.

Several connections produce to one partition, all batches of one size: first each one batch after the other, then with
many under way, whose answers may leave together. For every answer: an fdatasync of the log began after the write that
completed the answer's batch had returned, and had ended before the answer's write on the socket began.

    fsync-order.py [--server millstream|kafka] [--set KEY=VALUE]

Against Kafka it fails, as it should, unless the server is told log.flush.interval.messages=1.
"""

import argparse
import pathlib
import shutil
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "harness"))
import server as harness  # noqa: E402

harness.use_venv()
import acknowledged  # noqa: E402
import strace  # noqa: E402
import wire  # noqa: E402

TOPIC = "fsync-order"
CONNECTIONS = 4
RECORDS_PER_CONNECTION = 50
# How many requests of a connection are under way at most, in the two parts.
DEPTHS = (1, 16)
SHOWN_MAX = 10
VALUE_BYTES = 200


def produce(connection, depth, offsets, errors):
    try:
        for number in range(RECORDS_PER_CONNECTION):
            value = f"{connection.port} {number}".encode().ljust(VALUE_BYTES, b".")
            connection.send(TOPIC, 0, wire.batch(value))
            if number >= depth - 1:
                offsets.append(connection.receive(TOPIC))
        while len(offsets) < RECORDS_PER_CONNECTION:
            offsets.append(connection.receive(TOPIC))
    except (OSError, RuntimeError) as error:
        errors.append(str(error))


def load(connections, depth):
    """Produces on all connections at once; per connection the base offsets in the order of the answers."""
    errors = []
    offsets = {connection.port: [] for connection in connections}
    threads = [
        threading.Thread(target=produce, args=(connection, depth, offsets[connection.port], errors))
        for connection in connections
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return offsets, errors


def begins(writes, answer_bytes):
    """When the write began that holds the first byte of each answer, in the order of the answers."""
    sent = 0
    answers = 0
    for write in writes:
        sent += write.result
        while answers * answer_bytes < sent:
            yield write.begin
            answers += 1


def violations(calls, offsets, batch_bytes, first_offset, answer_bytes):
    """Answers that left before their batch was on disk, what else does not fit, and how many syncs and answers' writes
    there were.
    """
    log = [call for call in calls if f"/{TOPIC}-0/" in call.target and call.target.endswith(".log")]
    syncs = [call for call in log if call.name in ("fdatasync", "fsync") and call.result == 0]
    writes = [call for call in log if call not in syncs and call.result > 0]
    written = []
    total = 0
    for call in writes:
        total += call.result
        written.append((total, call.end))
    wrong = []
    sends = 0
    for port, base_offsets in offsets.items():
        sent = [call for call in calls if call.target.startswith("TCP") and call.target.endswith(f":{port}]")]
        sends += len(sent)
        answers = list(begins(sent, answer_bytes))
        if len(answers) != len(base_offsets):
            wrong.append(f"connection {port}: {len(base_offsets)} answers, but {len(answers)} written on the socket")
        for answer, offset in zip(answers, base_offsets):
            needed = (offset - first_offset + 1) * batch_bytes
            complete = next((end for total, end in written if total >= needed), None)
            if complete is None:
                wrong.append(f"offset {offset}: the log was not written")
            elif not any(complete <= sync.begin and sync.end <= answer for sync in syncs):
                wrong.append(f"offset {offset}: written by {complete:.6f}, answered at {answer:.6f}, no sync between")
    return wrong, len(syncs), sends


def run(server, directory):
    acknowledged.create_topic(server.bootstrap, TOPIC, 1)
    batch_bytes = len(wire.batch(b"." * VALUE_BYTES))
    wrong = []
    for depth in DEPTHS:
        connections = [wire.Connection(server.port) for _ in range(CONNECTIONS)]
        harness.wait_for(lambda: produces(connections[0]), "the partition takes a batch")
        received = connections[0].received_bytes
        first_offset = connections[0].produce(TOPIC, 0, wire.batch(b"." * VALUE_BYTES)) + 1
        answer_bytes = connections[0].received_bytes - received
        watched = strace.Strace(server.process_id(), str(pathlib.Path(directory) / f"strace-{depth}.txt"))
        offsets, errors = load(connections, depth)
        calls = watched.stop()
        for connection in connections:
            connection.close()
        more, syncs, sends = violations(calls, offsets, batch_bytes, first_offset, answer_bytes)
        print(f"{depth} under way: {sum(map(len, offsets.values()))} answers in {sends} writes, {syncs} syncs")
        wrong += errors + more
    return wrong


def produces(connection):
    try:
        connection.produce(TOPIC, 0, wire.batch(b"." * VALUE_BYTES))
        return True
    except RuntimeError:
        return False


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--server", default="millstream", choices=["millstream", "kafka"])
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    directory = tempfile.mkdtemp(prefix="millstream-fsync-")
    server = harness.make(options.server, directory, dict(pair.split("=", 1) for pair in options.set))
    wrong = ["did not get to the end"]
    try:
        server.start()
        wrong = run(server, directory)
        server.stop()
    finally:
        server.kill()
        shutil.rmtree(directory, ignore_errors=True)
    for line in wrong[:SHOWN_MAX]:
        print(f"wrong: {line}")
    expected = CONNECTIONS * RECORDS_PER_CONNECTION * len(DEPTHS)
    print(f"{max(expected - len(wrong), 0)} passed, {len(wrong)} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
