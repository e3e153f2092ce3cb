"""Reads the results of a windowed processor in three ways: with Kafka's own Java consumer, by HTTP, and from the page.

A result is (partition, key, window start, window end, kind, value). Within a partition results stand in the order of the
log. The page shows the last result of each window, and no partition (None).
"""

import json
import pathlib
import subprocess
import sys
import urllib.parse

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS.parent / "demo"))

RECORDS_PER_READ = 10_000
JAVA_SECONDS_MAX = 600
PAGE_SECONDS_MAX = 1800
# The tool gives up when nothing has come for so long: only a reader that misses records gets there.
JAVA_SILENCE_MS = 120_000


class ReadError(Exception):
    """What was read is no result, or not all of it could be read."""


def by_http(door, topic):
    """Every record of the topic up to where it ended when this began."""
    ends = dict(enumerate(door.ends(topic)))
    missing = {partition for partition, (start, end) in enumerate(door.partitions(topic)) if start < end}
    results, cursor = [], None
    while missing:
        where = f"cursor={urllib.parse.quote(cursor)}" if cursor else "from=earliest"
        answer = door.get(f"/api/v1/topics/{topic}/records?limit={RECORDS_PER_READ}&{where}")
        cursor = answer["next"]
        if not answer["records"]:
            raise ReadError(f"{topic}: nothing more by HTTP, but partitions {sorted(missing)} go on to {ends}")
        for record in answer["records"]:
            headers = {header["name"]: header["value"] for header in record["headers"]}
            results.append(_result(record["partition"], record["key"], headers, record["value"]))
            if record["offset"] + 1 >= ends[record["partition"]]:
                missing.discard(record["partition"])
    return results


def by_java(bootstrap, topic, count):
    """The first `count` records, by the Java client's consumer."""
    properties = ["print.partition=true", "print.headers=true", "print.key=true", "print.value=true"]
    command = [TESTS / "peers/kafka/tool", "console-consumer", "--bootstrap-server", bootstrap, "--topic", topic]
    command += ["--from-beginning", "--max-messages", str(count), "--timeout-ms", str(JAVA_SILENCE_MS)]
    for each in properties:
        command += ["--formatter-property", each]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=JAVA_SECONDS_MAX)
    if ended.returncode != 0:
        raise ReadError(f"the console consumer ended with {ended.returncode}: {ended.stderr.strip()[-500:]}")
    results = []
    for line in ended.stdout.splitlines():
        partition, headers, key, value = line.split("\t")
        headers = dict(header.split(":", 1) for header in headers.split(","))
        results.append(_result(int(partition.removeprefix("Partition:")), key, headers, json.loads(value)))
    if len(results) != count:
        raise ReadError(f"{topic}: the console consumer has read {len(results)} of {count} records")
    return results


def by_page(url, processor, count):
    """What the page shows once it has read `count` records, read page by page by a headless browser."""
    subprocess.run([TESTS / "setup", "packages", "browser"], check=True)
    command = ["node", TESTS / "acceptance" / "page-results.mjs", url, processor, str(count)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PAGE_SECONDS_MAX)
    if ended.returncode != 0:
        raise ReadError(f"the page could not be read: {ended.stderr.strip()[-1000:]}")
    rows = [json.loads(line) for line in ended.stdout.splitlines()]
    return [(None, row["key"], row["start"], row["end"], row["kind"], json.loads(row["value"])) for row in rows]


def _result(partition, key, headers, value):
    return (partition, key, int(headers["window.start"]), int(headers["window.end"]), headers["window.kind"], value)


def values_by_window(results):
    """Of each (key, start, end) all values in their order."""
    found = {}
    for _, key, start, end, _, value in results:
        found.setdefault((key, start, end), []).append(value)
    return found


def by_partition(results, partitions):
    split = [[] for _ in range(partitions)]
    for result in results:
        split[result[0]].append(result[1:])
    return split
