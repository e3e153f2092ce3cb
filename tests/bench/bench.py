#!/usr/bin/env python3
"""Millstream beside Apache Kafka 4.4.0 on this machine, in one run: `cargo xtask bench`.

    bench.py [--rounds 3] [--only produce,consume,latency,start,slow-sync,log] [--slow-sync MS] [--quick] [--json FILE]
             [--check]

In each round the sides run one after the other, never at once, in an order that changes from round to round, each in a
fresh directory, warmed up, with the same clients and the same data. A figure is the median of the rounds. The exit code
is 0 whatever the figures are, unless something failed to run; with --check a bound that is not met fails too.
docs/benchmarks.md says what the figures mean. Measured is $MILLSTREAM, or the release build of this checkout.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import sides
from sides import harness

harness.use_venv()
from confluent_kafka import KafkaException  # noqa: E402
from confluent_kafka.admin import AdminClient, NewTopic  # noqa: E402

import cells  # noqa: E402
import clients  # noqa: E402
import measure  # noqa: E402
import report  # noqa: E402

RESIDENT_AFTER_SECONDS = 10
TOPIC_SECONDS_MAX = 60
PAYLOADS_PER_FILE = 1000
LOG_BYTES_PER_VALUE_BYTE = 1.2
LOOK_AGAIN_SECONDS = 0.005
WARM_UP_RECORDS_PER_REQUEST = 10


class Bench:
    """One running side and what the cells need of it."""

    def __init__(self, side, server, scale, directory):
        self.side = side
        self.server = server
        self.bootstrap = server.bootstrap
        self.scale = scale
        self.directory = pathlib.Path(directory)

    def create_topic(self, topic, partitions=1):
        """A floor has each topic that it is asked for."""
        if self.side in sides.FLOORS:
            return
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        new = NewTopic(topic, num_partitions=partitions, replication_factor=1)
        admin.create_topics([new])[topic].result(TOPIC_SECONDS_MAX)

    def run(self, command):
        return clients.run(command, self.server.process_id())

    def run_producer(self, command, topic, data_bytes):
        """Keeps as much page cache as the data needs in a file of ours, and gives it back when the first record arrives.

        A hypervisor takes back memory that lies free for seconds, and a page that it has to provide anew costs several
        times what the write into it does: an amount that comes and goes, and is no broker's.
        """
        ballast = self.directory / "ballast"
        measure.fill(ballast, int(data_bytes * LOG_BYTES_PER_VALUE_BYTE))
        log = self.server.log_directory / f"{topic}-0"
        ended = threading.Event()

        def give_back():
            while not any(path.stat().st_size for path in log.glob("*.log")):
                if ended.wait(LOOK_AGAIN_SECONDS):
                    break
            ballast.unlink()

        giver = threading.Thread(target=give_back)
        giver.start()
        try:
            return self.run(command)
        finally:
            ended.set()
            giver.join()

    def payload_file(self, record_bytes):
        """Lines of that size: the Java tool's own payloads cost it more than sending them."""
        path = self.directory / f"payloads-{record_bytes}"
        if not path.exists():
            line = "{:0" + str(record_bytes) + "d}\n"
            path.write_text("".join(line.format(number) for number in range(PAYLOADS_PER_FILE)))
        return path

    def filled_topic(self, record_bytes):
        return f"filled-{record_bytes}", self.scale.records(cells.CONSUME_RECORDS[record_bytes])

    def warm_up(self):
        """The same for every side: fills the topics that are consumed later; many small requests; each client once."""
        for record_bytes in cells.RECORD_BYTES:
            topic, records = self.filled_topic(record_bytes)
            self.create_topic(topic)
            command = clients.librdkafka_produce(self.bootstrap, topic, record_bytes, records, "all", None)
            clients.librdkafka_produced(self.run(command).output, records)
        topic = "warm-up"
        self.create_topic(topic)
        record_bytes = cells.RECORD_BYTES[0]
        records = self.scale.warm_up_requests * WARM_UP_RECORDS_PER_REQUEST // 2
        for acks in ("1", "all"):
            command = clients.librdkafka_produce(
                self.bootstrap, topic, record_bytes, records, acks, record_bytes * WARM_UP_RECORDS_PER_REQUEST
            )
            clients.librdkafka_produced(self.run(command).output, records)
        # The Java producer speaks other versions and is idempotent, so it takes other ways through the broker.
        topic, records = "warm-up-java", self.scale.records(cells.PRODUCE_RECORDS[cells.JAVA, record_bytes, 16])
        self.create_topic(topic)
        payloads = self.payload_file(record_bytes)
        command = clients.java_produce(self.bootstrap, topic, payloads, records, "all", 16 * cells.KIB)
        clients.java_produced(self.run(command).output, records)
        if self.side in sides.FLOORS:
            return
        for record_bytes in cells.RECORD_BYTES:
            topic, records = self.filled_topic(record_bytes)
            clients.librdkafka_consumed(
                self.run(clients.librdkafka_consume(self.bootstrap, topic, records)).output, records
            )
            clients.java_consumed(self.run(clients.java_consume(self.bootstrap, topic, records)).output, records)


def measure_side(side, options, turn, results):
    """One side's part of a round."""
    wanted = [cell for cell in cells.of_round(options.only, turn, options.rounds) if side in cell.measured_on]
    starts = "start" in options.only and side not in sides.FLOORS
    slow = cells.SlowSync()
    try:
        if starts or wanted:
            with running(side, options, options.slow_sync) as bench:
                if starts:
                    results.add(cells.Start(), side, started(bench.server))
                if wanted:
                    bench.warm_up()
                for cell in wanted:
                    measure_cell(cell, side, bench, results)
                bench.server.stop()
        if slow.section in options.only and side in slow.measured_on:
            with running(side, options, cells.SLOW_SYNC_MS) as bench:
                measure_cell(slow, side, bench, results)
    except (clients.ClientError, harness.ServerError, KafkaException, OSError, subprocess.CalledProcessError) as error:
        note(f"FAILED {side.title}: {error}")
        results.fail(cells.Start(), side, str(error))


@contextlib.contextmanager
def running(side, options, slow_sync_ms):
    """A side in a directory of its own, of which nothing stays."""
    directory = tempfile.mkdtemp(prefix=f"millstream-bench-{side.key}-", dir=options.directory)
    server = None
    try:
        server = sides.start(side, pathlib.Path(directory) / "node", slow_sync_ms)
        yield Bench(side, server, options.scale, directory)
    finally:
        if server is not None:
            server.kill()
        shutil.rmtree(directory, ignore_errors=True)
        # What this side left to be written is not the next one's to pay.
        os.sync()


def measure_cell(cell, side, bench, results):
    try:
        results.add(cell, side, cell.measure(bench))
    except (clients.ClientError, harness.ServerError, KafkaException) as error:
        note(f"FAILED {side.title}, {', '.join(cell.labels())}: {error}")
        results.fail(cell, side, str(error))


def started(server):
    time.sleep(RESIDENT_AFTER_SECONDS)
    return {
        "ready_http_ms": server.ready.http_ms,
        "ready_kafka_ms": server.ready.kafka_ms,
        "resident_mib": measure.resident_mebibytes(server.process_id()),
    }


def measure_log(options, results):
    """The log without a broker."""
    with tempfile.TemporaryDirectory(prefix="millstream-bench-log-", dir=options.directory) as directory:
        command = [log_program(), "--json", "--directory", directory, *(["--quick"] if options.quick else [])]
        ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for line in ended.stdout.splitlines():
            measured = json.loads(line)
            results.add(cells.Log(measured["name"]), sides.LOG, cells.of_log(measured))
        if ended.returncode != 0:
            note(f"FAILED {sides.LOG.title}: {ended.stderr}")
            results.fail(cells.Log("all"), sides.LOG, ended.stderr)
    os.sync()


def log_program():
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", harness.ROOT / "target"))
    return target / "release" / "examples" / "log-bench"


def note(text):
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def versions(options):
    if options.only == [cells.Log.section]:
        return {}
    ours = subprocess.run([harness.binary(), "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    java = subprocess.run(["java", "-version"], check=True, stderr=subprocess.PIPE, text=True).stderr.splitlines()[0]
    lock = (clients.LIBRDKAFKA / "Cargo.lock").read_text()
    crate = lock.split('name = "rdkafka-sys"\nversion = "', 1)[1].split('"', 1)[0]
    return {"millstream": ours, "kafka": "Apache Kafka 4.4.0", "librdkafka": crate.split("+")[1], "java": java}


def named_versions(versions):
    if not versions:
        return []
    clients_text = f"librdkafka {versions['librdkafka']}, Kafka 4.4.0's Java tools on {versions['java']}"
    return [f"{versions['millstream']}; {versions['kafka']}; clients: {clients_text}"]


def conditions(machine, versions, options):
    lines = [
        f"{machine['at']}: {machine['processor']}, {machine['cores']} cores, {machine['memory_gib']} GiB, "
        f"Linux {machine['kernel']}; {machine['file_system']}, 4 KiB + fdatasync {machine['sync_ms']} ms; "
        f"load average at the start {machine['load_average']}",
        *named_versions(versions),
        f"median of {options.rounds} round{'s' if options.rounds > 1 else ''}"
        + ("; QUICK: volumes too small for figures" if options.quick else ""),
    ]
    if options.slow_sync:
        lines.append(f"each sync of a server takes {options.slow_sync:g} ms more than the disk does")
    if machine["load_average"] > measure.LOAD_AVERAGE_QUIET_MAX:
        lines.append("WARNING: the machine was busy before the run began; wall times and latencies mean little")
    return lines


def noise(results):
    others = results.other_cores()
    if not others:
        return []
    median = statistics.median(others)
    spread = f"median {median:.2f}, at most {max(others):.2f}"
    lines = [f"cores used by anything else, the kernel's write-back included: {spread}"]
    if median > measure.OTHER_CORES_QUIET_MAX:
        lines.append("WARNING: other programs ran meanwhile; of these figures only CPU seconds say something, roughly")
    return lines


def as_json(machine, versions, options, results, verdicts, seconds):
    samples = [
        {"section": cell.section, **dataclasses.asdict(cell), "side": side, "rounds": found}
        for (cell, side), found in results.samples.items()
    ]
    failures = [
        {"section": cell.section, **dataclasses.asdict(cell), "side": side, "reason": reason}
        for cell, side, reason in results.failures
    ]
    return {
        "machine": machine,
        "versions": versions,
        "rounds": options.rounds,
        "quick": options.quick,
        "slow_sync_ms": options.slow_sync,
        "seconds": round(seconds),
        "samples": samples,
        "failures": failures,
        "verdicts": [dataclasses.asdict(verdict) for verdict in verdicts],
    }


def arguments():
    parser = argparse.ArgumentParser(prog="cargo xtask bench", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, help="default 3; 1 with --quick")
    parser.add_argument("--only", default=",".join(cells.SECTIONS), help="sections, separated by commas")
    slow = "each sync takes so much longer, on all sides: produce, consume, latency, start"
    parser.add_argument("--slow-sync", type=float, default=0, metavar="MS", help=slow)
    parser.add_argument("--quick", action="store_true", help="a tenth of the data, one round: to try the program")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="every sample, as JSON")
    parser.add_argument("--check", action="store_true", help="fail if a bound is not met")
    parser.add_argument("--directory", help="where the brokers' data goes (default: the system's temporary folder)")
    options = parser.parse_args()
    options.only = options.only.split(",")
    options.rounds = options.rounds or (1 if options.quick else 3)
    options.directory = options.directory or tempfile.gettempdir()
    options.scale = cells.Scale(options.quick, options.slow_sync > 0)
    unknown = [section for section in options.only if section not in cells.SECTIONS]
    if unknown or options.rounds < 1:
        parser.error(f"sections are {', '.join(cells.SECTIONS)}; rounds are at least 1")
    return options


def set_up(options):
    """The clients, Kafka, and the release build of what is checked out, unless $MILLSTREAM names another."""
    if cells.Log.section in options.only:
        build = ["cargo", "build", "--release", "--package", "storage", "--example", "log-bench"]
        subprocess.run(build, check=True, cwd=harness.ROOT)
    if options.only == [cells.Log.section]:
        return
    subprocess.run([clients.TESTS / "setup", "packages", "kafka", "librdkafka"], check=True)
    if "MILLSTREAM" not in os.environ:
        build = ["cargo", "build", "--release", "--package", "millstream"]
        subprocess.run(build, check=True, cwd=harness.ROOT)
    if not harness.binary().exists():
        raise SystemExit(f"there is no {harness.binary()}")
    sides.build_floor()


def main():
    options = arguments()
    set_up(options)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    begin = time.monotonic()
    machine, named, results = measure.machine(options.directory), versions(options), report.Results()
    for turn in range(options.rounds):
        compared = (*sides.SIDES, *sides.FLOORS)
        first = turn % len(compared)
        for side in (*compared[first:], *compared[:first]) if options.only != [cells.Log.section] else ():
            note(f"round {turn + 1} of {options.rounds}: {side.title}")
            measure_side(side, options, turn, results)
        if cells.Log.section in options.only:
            note(f"round {turn + 1} of {options.rounds}: {sides.LOG.title}")
            measure_log(options, results)
    seconds = time.monotonic() - begin
    verdicts = report.verdicts(results, options.only)
    lines = [*conditions(machine, named, options), *noise(results), *report.tables(results, options.only), ""]
    lines += [line for verdict in verdicts for line in verdict.lines()]
    lines.append(f"{len(results.failures)} failed to run; {seconds / 60:.1f} minutes")
    print("\n".join(lines))
    if options.json:
        written = as_json(machine, named, options, results, verdicts, seconds)
        options.json.write_text(json.dumps(written, indent=1) + "\n")
    unmet = options.check and not all(verdict.met for verdict in verdicts)
    return 1 if results.failures or unmet else 0


if __name__ == "__main__":
    sys.exit(main())
