#!/usr/bin/env python3
"""The demo's numbers: every key and window as it is read, against a computation from the files in Python.

    demo.py [--only VARIANT,...] [--readers http,java,page] [--seed N] [--keep]

Each variant has a node of its own, the demo's topics, module and processors, and beside each processor one that gives
final results. Both files are fed whole by demo/feeding.py, the feed ends, and what stands in the output topics is
compared with window_model.py: with updates every window there is, with final results exactly those whose end and grace
stream time has reached.

    model         the model itself against recorded windows of Kafka Streams; without a node.
    plain         nothing happens: each update and each final result is there once, in its order; read by a Java
                  consumer, by HTTP and from the page. Then a second deployment reads from the earliest row and gives
                  the same.
    out-of-order  flights that are late by up to some hours and prices one symbol after the other, with and without
                  grace: late rows are left out where the model leaves them out.
    kill9         three kills of the node, one of them under the feed: the last value of each window.
    changelog     in the middle the node is killed, the rows read so far are deleted from the input and the local stores
                  from the disk: the counts go on from the changelog.
"""

import argparse
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import threading

import processing
import results
import window_model
from processing import Report, harness, wait_for_http, wait_processed, wait_until

sys.path.append(str(processing.TESTS / "clients" / "python"))
from murmur2 import partition_of  # noqa: E402

import datasets  # noqa: E402
import deployments  # noqa: E402
import feeding  # noqa: E402

HOUR, DAY = deployments.HOUR, deployments.DAY
READERS = ("http", "java", "page")
KILLS = 3
# How far flights are moved in the out-of-order feed, in rows: about half a day of them.
DISORDER_ROWS = 120


class Job:
    """One processor, and what it must give."""

    def __init__(self, name, data, topic, field, windows, emit, output=None):
        self.name, self.data, self.topic, self.field = name, data, topic, field
        self.windows, self.emit, self.output = windows, emit, output or name
        rows = [(row.key, row.time, row.fields[field]) for row in data.rows]
        self.expected = window_model.expect_all(rows, deployments.PARTITIONS, partition_of, windows)

    def spec(self, module):
        window = {"type": "hopping", "size_ms": self.windows.size, "advance_ms": self.windows.advance}
        return {
            "module": module,
            "input": self.topic,
            "from": "earliest",
            "output": self.output,
            "window": {**window, "grace_ms": self.windows.grace},
            "emit": self.emit,
            "config": {"value_field": self.field, "time_field": "date"},
        }

    def again(self):
        name = f"{self.name}-again"
        return Job(name, self.data, self.topic, self.field, self.windows, self.emit, name)

    @property
    def sequences(self):
        """Of each (key, start, end) every value that it must show, in order."""
        merged = {}
        for one in self.expected:
            merged.update(one.updates if self.emit == "update" else {window: [v] for window, v in one.finals.items()})
        return merged

    @property
    def result_count(self):
        return sum(map(len, self.sequences.values()))


def demo_jobs(flights, stocks):
    """The demo's own processors, and final ones beside them."""
    jobs = []
    for name, data, field, windows in [
        ("flight-delays", flights, "delay", window_model.Windows(HOUR, HOUR // 4)),
        ("stock-prices", stocks, "price", window_model.Windows(90 * DAY, 30 * DAY)),
    ]:
        spec = deployments.PROCESSORS[name]
        jobs.append(Job(name, data, spec["input"], field, windows, "update", spec["output"]))
        jobs.append(Job(f"{name}-final", data, spec["input"], field, windows, "final"))
    return jobs


def disordered(seed):
    """The flights, each row some rows away from where it belongs; the prices in the order of their file."""
    dice = random.Random(seed)
    flights, stocks = datasets.Flights(), datasets.Stocks(in_order=False)
    places = [(index + dice.randrange(DISORDER_ROWS), index) for index in range(len(flights))]
    flights.rows = [flights.rows[index] for _, index in sorted(places)]
    return flights, stocks


def disordered_jobs(flights, stocks):
    jobs = []
    for emit in ("update", "final"):
        for grace in (0, 2 * HOUR):
            windows = window_model.Windows(HOUR, HOUR // 4, grace)
            jobs.append(Job(f"late-flights-{grace // HOUR}-{emit}", flights, "flights", "delay", windows, emit))
        for grace in (0, 3650 * DAY):
            windows = window_model.Windows(90 * DAY, 30 * DAY, grace)
            jobs.append(Job(f"late-stocks-{grace // DAY}-{emit}", stocks, "stocks", "price", windows, emit))
    return jobs


# What is compared.


def compare(job, found, each_once):
    """Differences between what was read and the model, and how many windows were compared."""
    differences = []
    for partition, key, start, end, kind, _ in found:
        if kind != job.emit:
            differences.append(f"{key} {start}: a result of kind {kind}")
        if partition not in (None, partition_of(key.encode(), deployments.PARTITIONS)):
            differences.append(f"{key} {start}: stands in partition {partition}")
    wanted, seen = job.sequences, results.values_by_window(found)
    for window in sorted(wanted.keys() | seen.keys()):
        want, have = wanted.get(window, []), seen.get(window, [])
        if not each_once:
            want, have = want[-1:], have[-1:]
        if want != have:
            differences.append(f"{window}: wanted {shown(want)}, got {shown(have)}")
    return differences, len(wanted.keys() | seen.keys())


def shown(values):
    return f"{len(values)} values, the last {values[-1]}" if values else "nothing"


def compare_status(job, found):
    differences = []
    for task, wanted in zip(sorted(found["tasks"], key=lambda task: task["partition"]), job.expected, strict=True):
        facts = {
            "processed": wanted.processed,
            "late": wanted.late,
            "null_keys": 0,
            "rejected": 0,
            "stream_time": wanted.stream_time,
        }
        for name, value in facts.items():
            if task[name] != value:
                differences.append(f"partition {task['partition']}: {name} is {task[name]}, not {value}")
    return differences


class Run:
    """One node and one variant."""

    def __init__(self, server, options, report, variant):
        self.server, self.options, self.report, self.variant = server, options, report, variant
        self.door = None

    def start(self):
        self.server.start()
        self.door = wait_for_http(self.server)

    def kill_and_start(self, between=lambda: None):
        self.server.kill()
        self.door.close()
        between()
        self.server.start()
        wait_for_http(self.server).close()

    def deploy(self, jobs):
        for topic in {job.topic for job in jobs}:
            deployments.create_topic(self.door, topic, deployments.TOPICS[topic])
        module = deployments.upload(self.door, self.options.module)
        for job in jobs:
            # Retention goes by the times of the windows, which are long past: results are to stay.
            deployments.create_topic(self.door, job.output, deployments.BOUNDED)
            done = deployments.deploy(self.door, job.name, job.spec(module))
            again = deployments.deploy(self.door, job.name, job.spec(module))
            if (done, again) != ("deployed", "nothing"):
                raise AssertionError(f"{job.name}: {done}, then {again}")

    def feed(self, data, rows=None):
        """All of it, or until so many rows are there."""
        one = feeding.Feed(new_door(self.server), data, feeding.FULL_SPEED, rounds=1)
        if rows is None:
            one.run(threading.Event(), print)
            return
        one.resume()
        while one.sent < rows:
            one.send(rows - one.sent)

    def check(self, jobs, each_once, readers):
        for job in jobs:
            found = wait_processed(self.door, job.name, job.topic)
            self.case(job, "status", compare_status(job, found), len(job.expected))
            self.wait_results(job, each_once)
            for reader in readers:
                # The page shows the last value of each window.
                differences, compared = compare(job, self.read(job, reader), each_once and reader != "page")
                self.case(job, reader, differences, compared)

    def case(self, job, what, differences, compared):
        self.report.case(f"{self.variant}: {job.name} by {what}", differences, f"{compared} windows")

    def wait_results(self, job, each_once):
        """Rows that are processed may have results that are still on their way."""

        def are_there():
            if sum(self.door.ends(job.output)) < job.result_count:
                return False
            return each_once or not compare(job, results.by_http(self.door, job.output), each_once)[0]

        try:
            wait_until(are_there, f"the results of {job.name}")
        except harness.ServerError as error:
            # The comparison will say what is missing.
            print(error)

    def read(self, job, reader):
        if reader == "http":
            return results.by_http(self.door, job.output)
        count = sum(self.door.ends(job.output))
        if reader == "java":
            return results.by_java(self.server.bootstrap, job.output, count)
        return results.by_page(self.server.http, job.name, count)


def new_door(server):
    return processing.Door(server.http)


# The variants.


def model(run):
    """The model itself: the windows that Kafka Streams gave, as they were recorded. No node is needed."""
    compared, differences = 0, []
    for path in sorted((processing.TESTS / "cases" / "windows").glob("*.json")):
        case = json.loads(path.read_text())
        params = case.get("params", {})
        fits = case["operator"] in ("tumbling", "hopping") and case["level"] == "must" and "error" not in case["expected"]
        if not fits or params.get("aggregate") != "count" or "rekey_field" in params:
            continue
        advance = params.get("advance_ms", params["size_ms"])
        windows = window_model.Windows(params["size_ms"], advance, params.get("grace_ms", 0))
        rows = [(row["key"], row["timestamp"], 1) for row in case["input"] if row["key"] is not None]
        expected = window_model.expect([row for row in rows if row[1] >= 0], windows)
        found = expected.updates
        if params["emit"] != "update":
            found = {window: [value] for window, value in expected.finals.items()}
        found = {window: [value["count"] for value in values] for window, values in found.items()}
        wanted = {}
        for row in case["expected"]["output"]:
            wanted.setdefault((row["key"], row["window_start"], row["window_end"]), []).append(row["value"])
        compared += len(wanted)
        if found != wanted:
            differences.append(f"{case['name']}: wanted {wanted}, got {found}")
    run.report.case("model: the recorded windows of Kafka Streams", differences, f"{compared} windows")


def plain(run):
    run.start()
    flights, stocks = datasets.Flights(), datasets.Stocks()
    deployments.make_all(run.door, print)
    jobs = demo_jobs(flights, stocks)
    run.deploy([job for job in jobs if job.name not in deployments.PROCESSORS])
    for data in (flights, stocks):
        run.feed(data)
    run.check(jobs, each_once=True, readers=run.options.readers)
    second = [job.again() for job in jobs]
    run.deploy(second)
    run.check(second, each_once=True, readers=["http"])
    for job, other in zip(jobs, second, strict=True):
        first, again = (
            results.by_partition(results.by_http(run.door, topic), deployments.PARTITIONS)
            for topic in (job.output, other.output)
        )
        same = [] if first == again else [f"the results of {other.name} stand in another order"]
        run.case(job, "a second deployment, in the order of the log", same, len(job.sequences))
    run.server.stop()


def out_of_order(run):
    run.start()
    flights, stocks = disordered(run.options.seed)
    jobs = disordered_jobs(flights, stocks)
    run.deploy(jobs)
    for data in (flights, stocks):
        run.feed(data)
    late = {job.name: sum(one.late for one in job.expected) for job in jobs}
    print(f"late rows and windows: {late}", flush=True)
    run.check(jobs, each_once=True, readers=["http"])
    run.server.stop()


def kill9(run):
    run.start()
    dice = random.Random(run.options.seed)
    flights, stocks = datasets.Flights(), datasets.Stocks()
    jobs = demo_jobs(flights, stocks)
    run.deploy(jobs)
    run.feed(stocks)
    feed = threading.Thread(target=run.feed, args=(flights,), daemon=True)
    feed.start()
    for number in range(KILLS):
        share = (number + dice.random()) / KILLS
        processor = dice.choice(jobs[:2]).name
        wait_until(
            lambda share=share, processor=processor: progress(run, processor) >= share * len(flights),
            f"{processor} has processed {share:.0%} of the flights",
        )
        is_fed = sum(run.door.ends("flights")) == len(flights)
        at = progress(run, processor)
        print(f"kill {number + 1}: {processor} stands at {at}, the feed is over: {is_fed}", flush=True)
        run.kill_and_start()
    feed.join(processing.WAIT_SECONDS_MAX)
    run.check(jobs, each_once=False, readers=["http", *(["java"] if "java" in run.options.readers else [])])
    run.server.stop()


def progress(run, processor):
    return sum(task["position"] or 0 for task in processing.status(run.door, processor)["tasks"])


def changelog(run):
    run.start()
    flights, stocks = datasets.Flights(), datasets.Stocks()
    jobs = demo_jobs(flights, stocks)
    run.deploy(jobs)
    for data in (flights, stocks):
        run.feed(data, len(data) // 2)
    for job in jobs:
        wait_processed(run.door, job.name, job.topic)
    for topic in ("flights", "stocks"):
        ends = run.door.ends(topic)
        wanted = [{"partition": partition, "before": end} for partition, end in enumerate(ends)]
        run.door.call("DELETE", f"/api/v1/topics/{topic}/records", {"partitions": wanted})
        if run.door.partitions(topic) != [(end, end) for end in ends]:
            raise AssertionError(f"{topic} still has rows: {run.door.partitions(topic)}")
    stores = run.server.data_directory / "stores"
    if not stores.is_dir():
        raise AssertionError(f"there are no local stores at {stores}")
    run.kill_and_start(lambda: shutil.rmtree(stores))
    for data in (flights, stocks):
        run.feed(data)
    run.check(jobs, each_once=False, readers=["http"])
    run.server.stop()


# What may keep a variant from coming to its end.
FAILURES = (AssertionError, harness.ServerError, processing.Problem, results.ReadError, subprocess.SubprocessError)
VARIANTS = {"model": model, "plain": plain, "out-of-order": out_of_order, "kill9": kill9, "changelog": changelog}


def names(text, known):
    found = [name for name in text.split(",") if name]
    for name in found:
        if name not in known:
            raise argparse.ArgumentTypeError(f"{name} is none of {', '.join(known)}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--only", type=lambda text: names(text, VARIANTS), default=list(VARIANTS))
    parser.add_argument("--readers", type=lambda text: names(text, READERS), default=list(READERS))
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--keep", action="store_true", help="keep a variant's directory when something is wrong")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    datasets.install()
    options.module = processing.plugin("delay-statistics")
    report = Report()
    for name in options.only:
        directory = tempfile.mkdtemp(prefix=f"millstream-demo-{name}-")
        server = harness.make("millstream", directory)
        failed = report.failed
        try:
            VARIANTS[name](Run(server, options, report, name))
        except FAILURES as error:
            report.case(f"{name}: {type(error).__name__}", [str(error)], "nothing")
        finally:
            server.kill()
            if report.failed > failed:
                print(server.log_tail())
            if report.failed > failed and options.keep:
                print(f"kept {directory}")
            else:
                shutil.rmtree(pathlib.Path(directory), ignore_errors=True)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
