#!/usr/bin/env python3
"""Much data and many partitions: how long a node takes over them, beside Apache Kafka where a ratio is asked for.

    scale.py [--only recovery,open,create,restart,slow-sync] [--partitions 10000] [--gib 4] [--slow-partitions 1000]

- recovery: one partition, killed, no checkpoint: until it can be read. Warm. Under 4 s for 4 GiB.
- open: all partitions after a clean stop: until each is led and answers. Under 3 s and 300 MiB for 10,000.
- create: all partitions created, led, with their logs made. At most 0.1 times of Kafka's time.
- restart: after kill -9 with 1,000 partitions and 4 GiB, until each is led and answers. At most 0.1 times of Kafka's.
- slow-sync: acks=all over 1,000 partitions where each fdatasync takes 10 ms more: rate, p99, threads. No bound.

Times are of the wall, so the machine has to be idle otherwise. CPU seconds are the server's own.
"""

import argparse
import contextlib
import pathlib
import sys
import tempfile
import threading
import time

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS / "harness"))
sys.path.insert(0, str(TESTS / "bench"))
import measure  # noqa: E402
import server as harness  # noqa: E402

harness.use_venv()
import confluent_kafka  # noqa: E402
import confluent_kafka.admin  # noqa: E402

import acknowledged  # noqa: E402

RECOVERY_SECONDS_MAX = 4.0
OPEN_SECONDS_MAX = 3.0
OPEN_MEBIBYTES_MAX = 300
RATIO_MAX = 0.1
PARTITIONS_A_TOPIC = 1000
RESTART_PARTITIONS = 1000
RECORD_BYTES = 1000
BATCH_BYTES = 1_000_000
CHECKPOINT = "recovery-point-offset-checkpoint"
SLOW_SYNC_SECONDS = 20
SLOW_SYNC_MICROSECONDS = 10_000
WAIT_SECONDS = 600
# Nothing is deleted, and nothing is checkpointed while it is looked at.
SETTINGS = {
    "log.retention.check.interval.ms": "3600000",
    "log.retention.ms": "-1",
    "offsets.topic.num.partitions": "1",
}


def admin(server):
    config = {"bootstrap.servers": server.bootstrap, "logger": acknowledged.quiet_logger()}
    return confluent_kafka.admin.AdminClient(config)


def topics_of(partitions):
    """Names and numbers of partitions that add up to `partitions`."""
    whole, rest = divmod(partitions, PARTITIONS_A_TOPIC)
    counts = [PARTITIONS_A_TOPIC] * whole + ([rest] if rest else [])
    return {f"many-{number:03}": count for number, count in enumerate(counts)}


def places_of(topics):
    return [(name, number) for name, count in topics.items() for number in range(count)]


def create(server, topics):
    client = admin(server)
    # One request each: a controller takes no more than 10,000 records at a time.
    for name, count in topics.items():
        topic = confluent_kafka.admin.NewTopic(name, count, 1)
        made = client.create_topics([topic], request_timeout=WAIT_SECONDS, operation_timeout=WAIT_SECONDS)
        made[name].result(WAIT_SECONDS)


def are_led(client, topics):
    """Whether each partition has a leader and answers what its end is."""
    known = client.list_topics(timeout=WAIT_SECONDS).topics
    for name, count in topics.items():
        if name not in known or len(known[name].partitions) < count:
            return False
        if any(partition.leader < 0 for partition in known[name].partitions.values()):
            return False
    latest = confluent_kafka.admin.OffsetSpec.latest()
    wanted = {
        confluent_kafka.TopicPartition(name, number): latest for name, number in places_of(topics)
    }
    for answer in client.list_offsets(wanted, request_timeout=WAIT_SECONDS).values():
        try:
            answer.result(WAIT_SECONDS)
        except confluent_kafka.KafkaException:
            return False
    return True


def wait_led(server, topics):
    client = admin(server)
    harness.wait_for(lambda: are_led(client, topics), f"{server.name}: all partitions led", WAIT_SECONDS)


def logs(server, topics):
    return sum((server.log_directory / f"{name}-{number}").exists() for name, number in places_of(topics))


def fill(server, topics, size_bytes):
    """Spreads about `size_bytes` over the partitions."""
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": server.bootstrap,
            "acks": "1",
            "linger.ms": 50,
            "batch.size": BATCH_BYTES,
            "queue.buffering.max.messages": 1_000_000,
            "queue.buffering.max.kbytes": 1 << 20,
            "logger": acknowledged.quiet_logger(),
        }
    )
    value = b"." * RECORD_BYTES
    places = places_of(topics)
    for number in range(size_bytes // RECORD_BYTES):
        name, partition = places[number % len(places)]
        while True:
            try:
                producer.produce(name, value, partition=partition)
                break
            except BufferError:
                producer.poll(0.05)
    if producer.flush(WAIT_SECONDS):
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
    wait_led(server, topics)
    seconds = time.monotonic() - begin
    process = server.process_id()
    return seconds, measure.cpu_seconds(process), measure.resident_mebibytes(process)


@contextlib.contextmanager
def running(kind, settings=None, wrapper=()):
    with tempfile.TemporaryDirectory(prefix="scale-") as directory:
        everything = {**SETTINGS, **(settings or {})}
        if kind == "kafka":
            server = harness.Kafka(pathlib.Path(directory) / "node", everything)
        else:
            server = harness.Millstream(directory, everything, wrapper)
        server.start()
        try:
            yield server
        finally:
            server.kill()


def recovery(options):
    topics = {"large": 1}
    with running("millstream") as server:
        create(server, topics)
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
    topics = topics_of(options.partitions)
    with running("millstream") as server:
        create(server, topics)
        wait_led(server, topics)
        server.stop()
        seconds, cpu, mebibytes = timed_start(server, topics)
    print(
        f"open: {options.partitions} partitions led and answering after {seconds:.2f} s (bound {OPEN_SECONDS_MAX} s), "
        f"{cpu:.2f} CPU s, {mebibytes:.0f} MiB (bound {OPEN_MEBIBYTES_MAX})"
    )
    return seconds < OPEN_SECONDS_MAX and mebibytes < OPEN_MEBIBYTES_MAX


def created(options):
    topics = topics_of(options.partitions)
    times = {}
    for kind in ["millstream", "kafka"]:
        with running(kind) as server:
            before = measure.cpu_seconds(server.process_id())
            begin = time.monotonic()
            create(server, topics)
            wait_led(server, topics)
            harness.wait_for(lambda: logs(server, topics) == options.partitions, "all logs", WAIT_SECONDS)
            times[kind] = time.monotonic() - begin
            cpu = measure.cpu_seconds(server.process_id()) - before
        print(f"create: {kind}: {options.partitions} partitions in {times[kind]:.2f} s, {cpu:.2f} CPU s", flush=True)
    return below("create", times)


def restarted(options):
    topics = topics_of(RESTART_PARTITIONS)
    times = {}
    for kind in ["millstream", "kafka"]:
        with running(kind) as server:
            create(server, topics)
            wait_led(server, topics)
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
    """Closed loop: each of some threads waits for its record before the next, on a partition of its own at a time."""
    topics = topics_of(options.slow_partitions)
    inject = f"inject=fdatasync:delay_exit={SLOW_SYNC_MICROSECONDS}"
    wrapper = ["strace", "-D", "-f", "--seccomp-bpf", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync", "-e", inject]
    with running("millstream", wrapper=wrapper) as server:
        create(server, topics)
        wait_led(server, topics)
        waits, errors = [], []
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": server.bootstrap,
                "acks": "all",
                "linger.ms": 0,
                "logger": acknowledged.quiet_logger(),
            }
        )
        under_way = threading.Semaphore(options.slow_partitions)

        def delivered(begin):
            def told(error, _message):
                under_way.release()
                if error is not None:
                    errors.append(error)
                waits.append(time.monotonic() - begin)

            return told

        places = places_of(topics)
        begin, sent = time.monotonic(), 0
        threads = 0
        while time.monotonic() - begin < SLOW_SYNC_SECONDS:
            while not under_way.acquire(blocking=False):
                producer.poll(0.01)
            name, partition = places[sent % len(places)]
            producer.produce(name, b"x" * 100, partition=partition, on_delivery=delivered(time.monotonic()))
            producer.poll(0)
            sent += 1
            if sent == options.slow_partitions:
                threads = len(list(pathlib.Path(f"/proc/{server.process_id()}/task").iterdir()))
        producer.flush(WAIT_SECONDS)
        seconds = time.monotonic() - begin
    waits.sort()
    middle, late = waits[len(waits) // 2], waits[len(waits) * 99 // 100]
    print(
        f"slow-sync: {options.slow_partitions} partitions, as many records under way: "
        f"{len(waits) / seconds:.0f} records/s, p50 {middle * 1000:.0f} ms, p99 {late * 1000:.0f} ms, "
        f"{threads} threads, {len(errors)} errors",
        flush=True,
    )
    return not errors


CASES = {"recovery": recovery, "open": opened, "create": created, "restart": restarted, "slow-sync": slow_sync}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(CASES))
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--slow-partitions", type=int, default=1_000)
    parser.add_argument("--gib", type=int, default=4)
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
