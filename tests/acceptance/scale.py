#!/usr/bin/env python3
"""Much data and many partitions: how long a node takes over them, beside Apache Kafka where a ratio is asked for.

    scale.py [--only recovery,open,create,restart,slow-sync] [--partitions 10000] [--gib 4] [--slow-partitions 1000]
             [--slow-sync MS]

- recovery: one partition, killed, no checkpoint: until it can be read. Warm. Under 4 s for 4 GiB.
- open: all partitions after a clean stop: until each is led and answers. Under 3 s and 300 MiB for 10,000.
- create: all partitions created, led, with their logs made, each side on a new file system if this is root. At most 0.1
  times of Kafka's time.
- restart: after kill -9 with 1,000 partitions and 4 GiB, until each is led and answers. At most 0.1 times of Kafka's.
- slow-sync: acks=all over 1,000 partitions where each sync takes 10 ms more: rate, p99, threads. No bound here;
  `cargo xtask bench --only slow-sync` sets it beside Kafka's.

With --slow-sync each sync of all servers takes so much longer, in every case.
Times are of the wall, so the machine has to be idle otherwise. CPU seconds are the server's own.
"""

import argparse
import contextlib
import os
import pathlib
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
import confluent_kafka  # noqa: E402

import many  # noqa: E402

RECOVERY_SECONDS_MAX = 4.0
OPEN_SECONDS_MAX = 3.0
OPEN_MEBIBYTES_MAX = 300
RATIO_MAX = 0.1
RESTART_PARTITIONS = 1000
RECORD_BYTES = 1000
BATCH_BYTES = 1_000_000
# Sparse; Kafka's indexes alone are 20 MiB a partition until they are cut, but hold nothing.
FILE_SYSTEM_BYTES = 8 << 30
CHECKPOINT = "recovery-point-offset-checkpoint"
SLOW_SYNC_SECONDS = 20
SLOW_SYNC_MS = 10
# Nothing is deleted, and nothing is checkpointed while it is looked at.
SETTINGS = {
    "log.retention.check.interval.ms": "3600000",
    "log.retention.ms": "-1",
    "offsets.topic.num.partitions": "1",
}


def logs(server, topics):
    return sum((server.log_directory / f"{name}-{number}").exists() for name, number in many.places_of(topics))


def fill(server, topics, size_bytes):
    """Spreads about `size_bytes` over the partitions."""
    producer = confluent_kafka.Producer(
        many.quiet(
            {
                "bootstrap.servers": server.bootstrap,
                "acks": "1",
                "linger.ms": 50,
                "batch.size": BATCH_BYTES,
                "queue.buffering.max.messages": 1_000_000,
                "queue.buffering.max.kbytes": 1 << 20,
            }
        )
    )
    value = b"." * RECORD_BYTES
    places = many.places_of(topics)
    for number in range(size_bytes // RECORD_BYTES):
        name, partition = places[number % len(places)]
        while True:
            try:
                producer.produce(name, value, partition=partition)
                break
            except BufferError:
                producer.poll(0.05)
    if producer.flush(many.WAIT_SECONDS):
        raise AssertionError("records are left unsent")


def log_bytes(server, topics):
    return sum(file.stat().st_size for name in topics for file in server.log_directory.glob(f"{name}-*/*.log"))


def warm(server):
    for file in server.log_directory.glob("*/*"):
        with contextlib.suppress(OSError), open(file, "rb") as opened:
            while opened.read(1 << 20):
                pass


def timed_start(server, topics):
    """Seconds until all answer, the server's CPU seconds, its mebibytes."""
    begin = time.monotonic()
    server.start()
    many.wait_led(server, topics)
    seconds = time.monotonic() - begin
    process = server.process_id()
    return seconds, measure.cpu_seconds(process), measure.resident_mebibytes(process)


@contextlib.contextmanager
def fresh_file_system():
    """A folder on an ext4 of its own, if this is root. On one where many files were removed in the last minutes each new
    one is dear: ext4 passes over the inodes that were freed lately, one after the other, to find one for it.
    """
    with tempfile.TemporaryDirectory(prefix="scale-") as directory:
        if os.geteuid() != 0:
            print("not root, so no file system of its own: removed files of other runs may make files dear", flush=True)
            yield directory
            return
        image, mounted = pathlib.Path(directory) / "image", pathlib.Path(directory) / "mounted"
        mounted.mkdir()
        with open(image, "wb") as file:
            file.truncate(FILE_SYSTEM_BYTES)
        subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
        subprocess.run(["mount", "-o", "loop", image, mounted], check=True)
        try:
            yield mounted
        finally:
            subprocess.run(["umount", "-l", mounted], check=False)


@contextlib.contextmanager
def running(kind, slow_sync_ms, place=None):
    with tempfile.TemporaryDirectory(prefix="scale-", dir=place) as directory:
        if kind == "kafka":
            server = harness.Kafka(pathlib.Path(directory) / "node", SETTINGS)
        else:
            server = harness.Millstream(directory, SETTINGS)
        server.slow_sync_ms = slow_sync_ms
        server.start()
        try:
            yield server
        finally:
            server.kill()


def recovery(options):
    topics = {"large": 1}
    with running("millstream", options.slow_sync) as server:
        many.create(server, topics)
        fill(server, topics, options.gib << 30)
        server.stop()
        warm(server)
        clean, clean_cpu, _ = timed_start(server, topics)
        server.kill()
        (server.log_directory / CHECKPOINT).unlink()
        seconds, cpu, _ = timed_start(server, topics)
        gib = log_bytes(server, topics) / (1 << 30)
    print(
        f"recovery: {gib:.2f} GiB read again in {seconds:.2f} s (bound {RECOVERY_SECONDS_MAX} s), {cpu:.2f} CPU s; "
        f"after a clean stop {clean:.2f} s, {clean_cpu:.2f} CPU s",
        flush=True,
    )
    return seconds < RECOVERY_SECONDS_MAX


def opened(options):
    topics = many.topics_of(options.partitions)
    with running("millstream", options.slow_sync) as server:
        many.create(server, topics)
        many.wait_led(server, topics)
        server.stop()
        seconds, cpu, mebibytes = timed_start(server, topics)
    print(
        f"open: {options.partitions} partitions led and answering after {seconds:.2f} s (bound {OPEN_SECONDS_MAX} s), "
        f"{cpu:.2f} CPU s, {mebibytes:.0f} MiB (bound {OPEN_MEBIBYTES_MAX})"
    )
    return seconds < OPEN_SECONDS_MAX and mebibytes < OPEN_MEBIBYTES_MAX


def created(options):
    topics = many.topics_of(options.partitions)
    times = {}
    for kind in ["millstream", "kafka"]:
        with fresh_file_system() as place, running(kind, options.slow_sync, place) as server:
            before = measure.cpu_seconds(server.process_id())
            begin = time.monotonic()
            many.create(server, topics)
            many.wait_led(server, topics)
            harness.wait_for(lambda: logs(server, topics) == options.partitions, "all logs", many.WAIT_SECONDS)
            times[kind] = time.monotonic() - begin
            cpu = measure.cpu_seconds(server.process_id()) - before
        print(f"create: {kind}: {options.partitions} partitions in {times[kind]:.2f} s, {cpu:.2f} CPU s", flush=True)
    return below("create", times)


def restarted(options):
    topics = many.topics_of(RESTART_PARTITIONS)
    times = {}
    for kind in ["millstream", "kafka"]:
        with running(kind, options.slow_sync) as server:
            many.create(server, topics)
            many.wait_led(server, topics)
            fill(server, topics, options.gib << 30)
            gib = log_bytes(server, topics) / (1 << 30)
            server.kill()
            warm(server)
            times[kind], cpu, _ = timed_start(server, topics)
        print(
            f"restart: {kind}: {RESTART_PARTITIONS} partitions, {gib:.2f} GiB in {times[kind]:.2f} s, {cpu:.2f} CPU s",
            flush=True,
        )
    return below("restart", times)


def below(what, times):
    ratio = times["millstream"] / times["kafka"]
    print(f"{what}: {ratio:.3f} of Kafka's time (bound {RATIO_MAX})", flush=True)
    return ratio <= RATIO_MAX


def slow_sync(options):
    topics = many.topics_of(options.slow_partitions)
    with running("millstream", options.slow_sync or SLOW_SYNC_MS) as server:
        many.create(server, topics)
        many.wait_led(server, topics)
        loaded = many.load(server, topics, SLOW_SYNC_SECONDS)
    print(
        f"slow-sync: {options.slow_partitions} partitions, as many records under way: "
        f"{loaded.records_per_second:.0f} records/s, p50 {loaded.percentile_ms(50):.0f} ms, "
        f"p99 {loaded.percentile_ms(99):.0f} ms, {loaded.threads} threads, {len(loaded.errors)} errors",
        flush=True,
    )
    return not loaded.errors


CASES = {"recovery": recovery, "open": opened, "create": created, "restart": restarted, "slow-sync": slow_sync}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(CASES))
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--slow-partitions", type=int, default=1_000)
    parser.add_argument("--gib", type=int, default=4)
    parser.add_argument("--slow-sync", type=float, default=0, metavar="MS")
    options = parser.parse_args()
    names = options.only.split(",")
    unknown = [name for name in names if name not in CASES]
    if unknown:
        parser.error(f"there is no case {', '.join(unknown)}")
    results = [CASES[name](options) for name in names]
    print(f"{results.count(True)} passed, {results.count(False)} failed")
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
