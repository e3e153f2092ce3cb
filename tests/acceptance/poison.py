#!/usr/bin/env python3
"""One row of 512 is poison: the other 511 leave, and exactly that one is in the dead-letter topic, with its reason.

    poison.py [--seed N] [--keep]

Rows and results go by HTTP. The plugin is plugins/evil, to which a row's value says what to do: panic, loop for ever, take
all memory, refuse the row. Two more rows are bad for plugins/examples/delay-statistics: no JSON, and no number. All runs
share one node.
"""

import argparse
import base64
import json
import random
import shutil
import subprocess
import sys
import tempfile

import processing
from processing import Problem, Report, harness, wait_for_http, wait_processed, wait_until

import deployments  # noqa: E402

ROWS = 512
TIME = 1_000_000_000_000
DAY = deployments.DAY


class Poison:
    """What a run sends, and what the reason of its dead letter speaks of."""

    def __init__(self, name, plugin, good, bad, reason, count):
        self.name, self.plugin, self.good, self.bad, self.reason = name, plugin, good, bad, reason
        # How many rows a result says are in its window.
        self.count = count


def evil_count(value):
    return int.from_bytes(value, "little")


def statistics_count(value):
    return json.loads(value)["count"]


RUNS = [
    Poison("trap", "evil", "count", "trap no luck", "no luck", evil_count),
    Poison("loop", "evil", "count", "loop", "time", evil_count),
    Poison("memory", "evil", "count", "memory", "memory", evil_count),
    Poison("bad-row", "evil", "count", "reject", "asked to reject", evil_count),
    Poison("no-json", "delay-statistics", '{"delay":1}', "{delay", "JSON", statistics_count),
    Poison("no-number", "delay-statistics", '{"delay":1}', '{"delay":"much"}', "number", statistics_count),
]


def records(door, topic):
    """Everything that is in the topic: key, value in bytes, headers."""
    found, cursor, total = [], "from=earliest", sum(door.ends(topic))
    while len(found) < total:
        answer = door.get(f"/api/v1/topics/{topic}/records?value_format=base64&limit=10000&{cursor}")
        cursor = f"cursor={answer['next']}"
        if not answer["records"]:
            raise AssertionError(f"{topic}: {len(found)} of {total} records can be read")
        for record in answer["records"]:
            headers = {header["name"]: header["value"] for header in record["headers"]}
            found.append((record["key"], base64.b64decode(record["value"]), headers))
    return found


def run(door, poison, place):
    topic, name = f"poison-{poison.name}", f"eats-{poison.name}"
    deployments.create_topic(door, topic, {}, partitions=1)
    spec = {
        "module": deployments.upload(door, processing.plugin(poison.plugin)),
        "input": topic,
        "from": "earliest",
        "output": f"{name}-out",
        "window": {"type": "tumbling", "size_ms": DAY, "grace_ms": 0},
        "emit": "update",
        "config": {},
    }
    deployments.deploy(door, name, spec)
    rows = [
        {"key": "k", "value": poison.bad if number == place else poison.good, "timestamp": TIME + number}
        for number in range(ROWS)
    ]
    status, answer = door.call("POST", f"/api/v1/topics/{topic}/records?value_format=text", {"records": rows})
    if status != 200:
        raise AssertionError(f"the rows could not be written: {answer}")
    task = wait_processed(door, name, topic)["tasks"][0]
    wait_until(lambda: sum(door.ends(spec["output"])) >= ROWS - 1, f"{ROWS - 1} results of {name}")
    wait_until(lambda: sum(door.ends(f"{name}-dead-letter")) >= 1, f"a dead letter of {name}")
    return differences(door, poison, place, task, spec["output"], f"{name}-dead-letter")


def differences(door, poison, place, task, output, dead_letter_topic):
    wrong = []
    counts = [poison.count(value) for _, value, _ in records(door, output)]
    if counts != list(range(1, ROWS)):
        wrong.append(f"{len(counts)} results left, with the counts {counts[:3]}…{counts[-3:]}")
    dead = records(door, dead_letter_topic)
    if [(key, value.decode()) for key, value, _ in dead] != [("k", poison.bad)]:
        wrong.append(f"dead letters: {[(key, value) for key, value, _ in dead][:5]}, {len(dead)} in all")
    for _, _, headers in dead:
        if poison.reason not in headers.get("dead-letter.reason", ""):
            wrong.append(f"the reason does not speak of {poison.reason!r}: {headers}")
        if headers.get("dead-letter.offset") != str(place):
            wrong.append(f"the dead letter does not say that it was at offset {place}: {headers}")
    facts = (task["state"], task["processed"], task["rejected"], task["null_keys"])
    if facts != ("running", ROWS, 1, 0):
        wrong.append(f"state, processed, rejected and null keys are {facts}")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--keep", action="store_true", help="keep the data directory when something is wrong")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    dice = random.Random(options.seed)
    directory = tempfile.mkdtemp(prefix="millstream-poison-")
    server = harness.make("millstream", directory)
    report = Report()
    try:
        # Before there is a connection: the first time they are built, which takes longer than the node keeps an idle one.
        processing.plugin(RUNS[0].plugin)
        server.start()
        door = wait_for_http(server)
        for poison in RUNS:
            place = dice.randrange(ROWS)
            try:
                wrong = run(door, poison, place)
            except (AssertionError, harness.ServerError, Problem) as error:
                wrong = [str(error)]
            report.case(f"{poison.name} at row {place}", wrong, f"{ROWS} rows")
        server.stop()
    except (harness.ServerError, subprocess.SubprocessError) as error:
        report.case("the node", [str(error)], "nothing")
    finally:
        server.kill()
        if report.failed:
            print(server.log_tail())
        if report.failed and options.keep:
            print(f"kept {directory}")
        else:
            shutil.rmtree(directory, ignore_errors=True)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
