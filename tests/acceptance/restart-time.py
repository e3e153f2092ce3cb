#!/usr/bin/env python3
"""How long a start takes for each GiB that has to be read again: nothing of it is below the recovery point.

    restart-time.py [--mib N] [--rounds N]

Two shapes: batches of one record of 100 bytes, and batches of a megabyte. The node is killed, its recovery point taken
away, and the time to the first answer of the next start is compared with that of the same directory after a clean stop.
The files are in the page cache. CPU seconds are the process's own; they say more than the wall on a busy machine. Fails
if a GiB takes a second or more.
"""

import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS / "harness"))
sys.path.insert(0, str(TESTS / "bench"))
import measure  # noqa: E402
import server as harness  # noqa: E402

harness.use_venv()
from confluent_kafka import Producer  # noqa: E402

import acknowledged  # noqa: E402

SECONDS_A_GIB_MAX = 1.0
RECORD_BYTES = 100
# A batch's head and a record's frame around its value.
ONE_RECORD_BATCH_BYTES = 61 + 9 + RECORD_BYTES
SHAPES = {"batches of one record": 1, "batches of a megabyte": 9_000}
CHECKPOINT = "recovery-point-offset-checkpoint"


def fill(server, topic, records_a_batch, size_bytes):
    """Produces about `size_bytes` to one partition."""
    acknowledged.create_topic(server.bootstrap, topic, 1, {"retention.ms": "-1"})
    producer = Producer(
        {
            "bootstrap.servers": server.bootstrap,
            "acks": "1",
            "linger.ms": 0 if records_a_batch == 1 else 100,
            "batch.num.messages": records_a_batch,
            "batch.size": 1_000_000,
            "queue.buffering.max.messages": 1_000_000,
            "logger": acknowledged.quiet_logger(),
        }
    )
    value = b"." * RECORD_BYTES
    each = ONE_RECORD_BATCH_BYTES if records_a_batch == 1 else RECORD_BYTES + 9
    for _ in range(size_bytes // each):
        while True:
            try:
                producer.produce(topic, value, partition=0)
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(300):
        raise AssertionError("records are left unsent")


def log_bytes(server, topic):
    return sum(file.stat().st_size for file in server.log_directory.glob(f"{topic}-*/*.log"))


def warm(server):
    for file in server.log_directory.glob("*/*"):
        subprocess.run(["cat", file], stdout=subprocess.DEVNULL, check=True)


def started(server):
    """Seconds to the first answer, and CPU seconds until then."""
    begin = time.monotonic()
    server.start()
    return time.monotonic() - begin, measure.cpu_seconds(server.process_id())


def shape(name, records_a_batch, size_bytes, rounds):
    topic = "restarted"
    with tempfile.TemporaryDirectory(prefix="restart-time-") as directory:
        settings = {"log.retention.check.interval.ms": "600000"}
        server = harness.Millstream(directory, settings).start()
        try:
            fill(server, topic, records_a_batch, size_bytes)
            server.stop()
            warm(server)
            clean, clean_cpu = started(server)
            walls, cpus = [], []
            for _ in range(rounds):
                server.kill()
                (server.log_directory / CHECKPOINT).unlink(missing_ok=True)
                wall, cpu = started(server)
                walls.append(wall - clean)
                cpus.append(cpu - clean_cpu)
            gib = log_bytes(server, topic) / (1 << 30)
        finally:
            server.kill()
    wall, cpu = statistics.median(walls) / gib, statistics.median(cpus) / gib
    print(
        f"{name}: {gib:.2f} GiB in {statistics.median(walls):.2f} s beyond a clean start's {clean:.2f} s: "
        f"{wall:.2f} s a GiB, {cpu:.2f} CPU seconds a GiB",
        flush=True,
    )
    return wall < SECONDS_A_GIB_MAX


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    results = [shape(name, records, arguments.mib << 20, arguments.rounds) for name, records in SHAPES.items()]
    print(f"{results.count(True)} passed, {results.count(False)} failed")
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
