#!/usr/bin/env python3
"""kill -9 at each system call that changes what is on disk, one after the other, whatever the log is doing.

For each scenario (crash_scenarios.py) a dry run counts the calls of each kind on files of the data directory. Then, for
each kind and each N, on a copy of the prepared data: strace kills the node where a thread makes its N-th such call,
before the call has done anything, so that the states between two calls are seen. The node is started twice in a row;
each time what was not answered is sent again, and all is as the scenario says: nothing acknowledged is lost, no offset
is used twice, no batch is there twice, the log is readable to its end, and its files are as Kafka's would be. After the
second start the node retains, compacts and records as before.

    crash-sweep.py [--quick] [--call NAME] [--scenario NAME] [--at N] [--seed S] [--keep] [--calls-max N]

strace counts by thread, so the node has one worker thread, which appends; what cleans, deletes and records works
through its calls on one thread as well. Calls on other files are counted, and not killed at. Needs strace.
"""

import argparse
import collections
import copy
import dataclasses
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "harness"))
import crash_scenarios as scenarios  # noqa: E402
import server as harness  # noqa: E402
import strace  # noqa: E402
import wire  # noqa: E402

# Name → what strace calls them.
CALLS = {
    "pwrite": ("pwritev", "pwritev2", "pwrite64"),
    "write": ("write",),
    "fdatasync": ("fdatasync",),
    "rename": ("rename", "renameat", "renameat2"),
    "ftruncate": ("ftruncate",),
    "unlink": ("unlink", "unlinkat"),
    "openat": ("openat",),
    "mkdir": ("mkdir", "mkdirat"),
    "fsync": ("fsync",),
}
CALLS_MAX = 200
QUICK_CALLS_MAX = 3
SHOWN_MAX = 10
WAIT_SECONDS = 60
FAILURES = (
    harness.ServerError,
    scenarios.OffsetReused,
    subprocess.SubprocessError,
    OSError,
    RuntimeError,
    ValueError,
)
LINE = re.compile(r"^(?P<thread>\d+)\s+(?P<name>\w+)\(")
# One worker, so that strace's count of a thread's calls is the count of all that are made there.
ONE_WORKER = ["env", "TOKIO_WORKER_THREADS=1"]


@dataclasses.dataclass
class Cell:
    """A kind of call in a scenario."""

    call: str
    scenario: scenarios.Scenario
    # How many there are in a dry run, and the numbers that a thread's calls bear.
    count: int
    numbers: list
    rounds: int = 0
    hits: int = 0
    failures: int = 0


class Prepared:
    """The data directory that a scenario begins with, and what is in it."""

    def __init__(self, scenario, folder, seed):
        self.scenario = scenario
        self.folder = folder / f"{scenario.name}-prepared"
        self.seed = seed
        self.work = scenarios.Work(random.Random(seed))
        server = self.server(self.folder)
        try:
            server.start()
            connection = wire.Connection(server.port)
            scenarios.when_ready(
                lambda: connection.create_topic(scenarios.TOPIC, scenarios.PARTITIONS, scenario.configs)
            )
            self.work.producer_id = scenarios.when_ready(connection.producer_id)
            for partition in range(scenarios.PARTITIONS):
                scenarios.when_ready(lambda: connection.offset(scenarios.TOPIC, partition, wire.LATEST))
            self.work.send(connection, scenario.prepared_batches)
            if scenario.starts:
                server.kill()
                self._tear(server)
            else:
                server.stop()
        finally:
            server.kill()

    def server(self, folder):
        settings = {**scenarios.SETTINGS, **self.scenario.settings}
        return harness.Millstream(folder, settings, ONE_WORKER)

    def copy(self, folder):
        """A node of its own on a copy, and what it is to know."""
        shutil.copytree(self.folder / "data", folder / "data")
        work = copy.deepcopy(self.work)
        work.dice = random.Random(self.seed + 1)
        return self.server(folder), work

    def _tear(self, server):
        """As if the last write had not come to its end."""
        for partition in range(scenarios.PARTITIONS):
            active = max((server.log_directory / f"{scenarios.TOPIC}-{partition}").glob("*.log"))
            with open(active, "ab") as file:
                file.write(wire.batch(b"torn")[:40])


class Sweep:
    def __init__(self, folder, seed, keep):
        self.folder = folder
        self.seed = seed
        self.keep = keep
        self.kept = False
        self._prepared = {}

    def prepared(self, scenario):
        if scenario.name not in self._prepared:
            self._prepared[scenario.name] = Prepared(scenario, self.folder, self.seed)
        return self._prepared[scenario.name]

    def dry_run(self, scenario):
        """What lines strace has for the scenario, on which data directory."""
        folder = self.folder / "dry-run"
        server, work = self.prepared(scenario).copy(folder)
        output = folder / "strace.txt"
        every = names_for_strace(CALLS)
        try:
            self._act(scenario, server, work, ["-y", "-s", "0", "-o", str(output), "-e", f"trace={every}"])
            server.kill()
            ended = re.compile(r"\+\+\+ (exited|killed)")
            if scenario.starts:
                harness.wait_for(lambda: ended.search(output.read_text()), "strace ends", WAIT_SECONDS)
            return output.read_text().splitlines(), str(server.data_directory)
        finally:
            server.kill()
            shutil.rmtree(folder, ignore_errors=True)

    def cells(self, scenario, calls):
        lines, data_directory = self.dry_run(scenario)
        made = collections.Counter()
        count = collections.Counter()
        numbers = collections.defaultdict(set)
        call_of = {name: call for call, names in CALLS.items() for name in names}
        for line in lines:
            begun = LINE.match(line)
            if begun:
                made[begun["thread"], begun["name"]] += 1
                if data_directory in line:
                    call = call_of[begun["name"]]
                    count[call] += 1
                    numbers[call].add(made[begun["thread"], begun["name"]])
        return [Cell(call, scenario, count[call], sorted(numbers[call])) for call in calls]

    def round(self, cell, number):
        """Whether the kill came, and what is wrong afterwards."""
        folder = pathlib.Path(tempfile.mkdtemp(prefix="round-", dir=self.folder))
        server, work = self.prepared(cell.scenario).copy(folder)
        hit = False
        wrong = ["did not get to the end"]
        try:
            options = strace.kill_at(names_for_strace([cell.call]), number)
            wrong = self._act(cell.scenario, server, work, options)
            hit = server.process is not None and server.process.poll() == -signal.SIGKILL
            server.kill()
            busy, server.settings = server.settings, {**harness.TEST_SETTINGS, **scenarios.SETTINGS}
            wrong += [f"first start: {line}" for line in self._check(cell.scenario, server, work)]
            # Nothing was under way in the background: what lies there now, the start has left there.
            wrong += [f"first start: {line}" for line in scenarios.files_wrong(server.log_directory)]
            server.settings = busy
            wrong += [f"second start: {line}" for line in self._check(cell.scenario, server, work)]
        except FAILURES as error:
            wrong.append(f"{type(error).__name__}: {error}")
        finally:
            server.kill()
            wrong += [line for line in server.log_tail(1_000_000).splitlines() if "panicked" in line]
            if wrong and self.keep:
                print(f"kept {folder}")
                self.kept = True
            else:
                shutil.rmtree(folder, ignore_errors=True)
        return hit, wrong

    def _act(self, scenario, server, work, options):
        """Lets the scenario run under strace, which may kill the node."""
        if scenario.starts:
            server.wrapper = [*ONE_WORKER, "strace", "-D", "-f", *options]
            try:
                server.start()
            except harness.ServerError:
                if server.process.poll() != -signal.SIGKILL:
                    raise
            server.wrapper = ONE_WORKER
            return []
        server.start()
        connection = wire.Connection(server.port)
        for partition in range(scenarios.PARTITIONS):
            scenarios.when_ready(lambda: connection.offset(scenarios.TOPIC, partition, wire.EARLIEST))
        attached = strace.Attached(server.process_id(), options)
        try:
            scenario.act(scenarios.Round(server, work, connection))
        except OSError as error:
            try:
                server.process.wait(WAIT_SECONDS)
            except subprocess.TimeoutExpired:
                return [f"the node lives on: {error}"]
        finally:
            attached.stop()
            connection.close()
        return []

    def _check(self, scenario, server, work):
        server.start()
        connection = wire.Connection(server.port)
        wrong = work.send_again(connection)
        wrong += scenarios.differences(scenario, work, connection)
        work.send(connection, 2)
        wrong += scenarios.differences(scenario, work, connection)
        wrong += scenarios.topics_wrong(work, connection)
        connection.close()
        server.kill()
        return wrong

    def run(self, cell, numbers):
        begin = time.monotonic()
        for number in numbers:
            hit, wrong = self.round(cell, number)
            cell.rounds += 1
            cell.hits += hit
            cell.failures += bool(wrong)
            for line in wrong[:SHOWN_MAX]:
                print(f"wrong: {cell.call} {number} in {cell.scenario.name}: {line}")
            if wrong:
                where = f"--call {cell.call} --scenario {cell.scenario.name} --at {number} --seed {self.seed}"
                print(f"replay: cargo xtask accept crash-sweep {where}", flush=True)
        seconds = time.monotonic() - begin
        print(f"{cell.scenario.name} {cell.call}: {cell.rounds} rounds, {cell.hits} hits, {seconds:.0f} s", flush=True)


def names_for_strace(calls):
    """Not every architecture has all of them."""
    return ",".join(f"?{name}" for call in calls for name in CALLS[call])


def spread(numbers, count_max):
    """At most so many of them, the first and the last among them."""
    if len(numbers) <= count_max:
        return numbers
    if count_max == 1:
        return numbers[:1]
    return [numbers[round(step * (len(numbers) - 1) / (count_max - 1))] for step in range(count_max)]


def table(cells):
    print(f"\n{'scenario':<12}{'call':<12}{'dry run':>8}{'rounds':>8}{'hits':>8}{'failures':>10}")
    for cell in cells:
        print(
            f"{cell.scenario.name:<12}{cell.call:<12}{cell.count:>8}{cell.rounds:>8}{cell.hits:>8}{cell.failures:>10}"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_CALLS_MAX} calls of a kind in each scenario")
    parser.add_argument("--calls-max", type=int, default=CALLS_MAX, help="of a kind in each scenario")
    parser.add_argument("--call", action="append", choices=list(CALLS))
    parser.add_argument("--scenario", action="append", choices=[one.name for one in scenarios.SCENARIOS])
    parser.add_argument("--at", type=int, help="this call alone, without a dry run")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--keep", action="store_true", help="keep the data of rounds in which something is wrong")
    options = parser.parse_args()
    calls_max = QUICK_CALLS_MAX if options.quick else options.calls_max
    calls = options.call or list(CALLS)
    print(f"seed {options.seed}", flush=True)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="millstream-sweep-"))
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    sweep = Sweep(folder, options.seed, options.keep)
    cells = []
    try:
        for scenario in scenarios.SCENARIOS:
            if options.scenario and scenario.name not in options.scenario:
                continue
            if options.at:
                found = [Cell(call, scenario, options.at, [options.at]) for call in calls]
            else:
                found = sweep.cells(scenario, calls)
            for cell in found:
                cells.append(cell)
                if cell.numbers:
                    sweep.run(cell, spread(cell.numbers, calls_max))
    finally:
        table(cells)
        if not sweep.kept:
            shutil.rmtree(folder, ignore_errors=True)
    rounds = sum(cell.rounds for cell in cells)
    failed = sum(cell.failures for cell in cells)
    if not options.at and not any(cell.hits for cell in cells):
        print("wrong: no node was killed")
        failed += 1
    print(f"{rounds - sum(cell.failures for cell in cells)} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
