#!/usr/bin/env python3
"""An answer to acks=all leaves only after its batch is on disk, as strace sees it.

Several connections produce to one partition, each one batch after the other, all batches of one size. For every answer:
an fdatasync of the log began after the write that completed the answer's batch had returned, and had ended before the
answer's write on the socket began.

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
SHOWN_MAX = 10
VALUE_BYTES = 200


def produce(connection, offsets, errors):
    try:
        for number in range(RECORDS_PER_CONNECTION):
            value = f"{connection.port} {number}".encode().ljust(VALUE_BYTES, b".")
            offsets.append(connection.produce(TOPIC, 0, wire.batch(value)))
    except (OSError, RuntimeError) as error:
        errors.append(str(error))


def load(connections):
    """Produces on all connections at once; per connection the base offsets in the order of the answers."""
    errors = []
    offsets = {connection.port: [] for connection in connections}
    threads = [
        threading.Thread(target=produce, args=(connection, offsets[connection.port], errors)) for connection in connections
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return offsets, errors


def violations(calls, offsets, batch_bytes, first_offset):
    """Answers that left before their batch was on disk, and what else does not fit."""
    log = [call for call in calls if f"/{TOPIC}-0/" in call.target and call.target.endswith(".log")]
    syncs = [call for call in log if call.name in ("fdatasync", "fsync") and call.result == 0]
    writes = [call for call in log if call not in syncs and call.result > 0]
    written = []
    total = 0
    for call in writes:
        total += call.result
        written.append((total, call.end))
    wrong = []
    for port, base_offsets in offsets.items():
        answers = [call for call in calls if call.target.startswith("TCP") and call.target.endswith(f":{port}]")]
        if len(answers) < len(base_offsets):
            wrong.append(f"connection {port}: {len(base_offsets)} answers, but {len(answers)} writes on the socket")
        for answer, offset in zip(answers, base_offsets):
            needed = (offset - first_offset + 1) * batch_bytes
            complete = next((end for total, end in written if total >= needed), None)
            if complete is None:
                wrong.append(f"offset {offset}: the log was not written")
            elif not any(complete <= sync.begin and sync.end <= answer.begin for sync in syncs):
                wrong.append(f"offset {offset}: written by {complete:.6f}, answered at {answer.begin:.6f}, no sync between")
    return wrong, len(syncs)


def run(server, directory):
    acknowledged.create_topic(server.bootstrap, TOPIC, 1)
    connections = [wire.Connection(server.port) for _ in range(CONNECTIONS)]
    batch_bytes = len(wire.batch(b"." * VALUE_BYTES))
    harness.wait_for(lambda: produces(connections[0]), "the partition takes a batch")
    first_offset = connections[0].produce(TOPIC, 0, wire.batch(b"." * VALUE_BYTES)) + 1
    watched = strace.Strace(server.process_id(), str(pathlib.Path(directory) / "strace.txt"))
    offsets, errors = load(connections)
    calls = watched.stop()
    for connection in connections:
        connection.close()
    wrong, syncs = violations(calls, offsets, batch_bytes, first_offset)
    print(f"{sum(map(len, offsets.values()))} answers, {syncs} syncs")
    return errors + wrong


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
    expected = CONNECTIONS * RECORDS_PER_CONNECTION
    print(f"{max(expected - len(wrong), 0)} passed, {len(wrong)} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
