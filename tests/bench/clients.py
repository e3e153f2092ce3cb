"""The clients that load a broker: which command each cell runs, and what its output says.

Every parser fails on output that does not account for each record, so that a cell cannot show half of its work.
"""

import dataclasses
import pathlib
import re
import resource
import subprocess
import time

import measure

TESTS = pathlib.Path(__file__).resolve().parent.parent
LIBRDKAFKA = TESTS / ".cache" / "librdkafka"
JAVA_TOOL = TESTS / "peers" / "kafka" / "tool"
# Ample: a disk that syncs in milliseconds makes Kafka's warm-up take minutes.
CLIENT_SECONDS_MAX = 1200
# What a broker still does for a client that has gone belongs to that client's cell.
SETTLE_SECONDS = 0.2

LINGER_MS = 5
LATENCY_RECORD_BYTES = 100


class ClientError(Exception):
    """A client did not do all that it was asked for."""


@dataclasses.dataclass(frozen=True)
class Load:
    """What the broker and the client spent while a client ran."""

    output: str
    broker_cpu_seconds: float
    client_cpu_seconds: float
    wall_seconds: float
    other_cores: float


def run(command, broker_process_id):
    command = [str(word) for word in command]
    broker, machine = measure.cpu_seconds(broker_process_id), measure.machine_busy_seconds()
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.monotonic()
    try:
        ended = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
            errors="replace", timeout=CLIENT_SECONDS_MAX,
        )
    except subprocess.TimeoutExpired as expired:
        raise ClientError(f"{command[0]} took longer than {CLIENT_SECONDS_MAX} s") from expired
    wall = time.monotonic() - begin
    time.sleep(SETTLE_SECONDS)
    broker_used = measure.cpu_seconds(broker_process_id) - broker
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    client_used = after.ru_utime + after.ru_stime - children.ru_utime - children.ru_stime
    busy = measure.machine_busy_seconds() - machine
    if ended.returncode not in accepted_codes(command):
        raise ClientError(f"{command[0]} ended with {ended.returncode}: {ended.stdout[-600:].strip()}")
    other = max(0.0, busy - broker_used - client_used) / (wall + SETTLE_SECONDS)
    return Load(ended.stdout, broker_used, client_used, wall, other)


def accepted_codes(command):
    """With 1, librdkafka's producer says that the records that it sent are not as many as were delivered. It counts the
    sent ones without a lock and now and then misses one; how many were delivered its reader here looks at.
    """
    return (0, 1) if command[:2] == [str(LIBRDKAFKA / "rdkafka_performance"), "-P"] else (0,)


def librdkafka_produce(bootstrap, topic, record_bytes, records, acks, batch_bytes):
    """`batch_bytes` None: librdkafka's own default, a megabyte."""
    command = [
        LIBRDKAFKA / "rdkafka_performance", "-P", "-q", "-b", bootstrap, "-t", topic, "-s", record_bytes, "-c", records,
        "-a", "-1" if acks == "all" else acks, "-z", "none", "-X", "queue.buffering.max.messages=1000000",
        "-X", "queue.buffering.max.kbytes=1048576", "-X", f"linger.ms={LINGER_MS}",
    ]  # fmt: skip
    return command if batch_bytes is None else [*command, "-X", f"batch.size={batch_bytes}"]


def librdkafka_produced(output, records):
    """Records a second."""
    found = re.findall(
        r"messages produced .*?, (\d+) delivered \(offset -?\d+, (\d+) failed\) in \d+ms: (\d+) msgs/s", output
    )
    if not found or int(found[-1][0]) != records or int(found[-1][1]) != 0:
        raise ClientError(f"librdkafka did not deliver {records} records: {output[-600:].strip()}")
    return float(found[-1][2])


def java_produce(bootstrap, topic, payload_file, records, acks, batch_bytes):
    return [
        JAVA_TOOL, "producer-perf-test", "--bootstrap-server", bootstrap, "--topic", topic, "--num-records", records,
        "--throughput", "-1", "--payload-file", payload_file, "--command-property", f"acks={acks}",
        "compression.type=none", f"batch.size={batch_bytes}", f"linger.ms={LINGER_MS}",
    ]  # fmt: skip


def java_produced(output, records):
    found = re.findall(r"^(\d+) records sent, ([\d.]+) records/sec .* 99\.9th\.?$", output, re.MULTILINE)
    if not found or int(found[-1][0]) != records:
        raise ClientError(f"the Java producer did not send {records} records: {output[-600:].strip()}")
    return float(found[-1][1])


def librdkafka_consume(bootstrap, topic, records):
    return [
        LIBRDKAFKA / "rdkafka_performance", "-C", "-q", "-b", bootstrap, "-t", topic, "-p", 0, "-o", "beginning",
        "-c", records,
    ]  # fmt: skip


def librdkafka_consumed(output, records):
    found = re.findall(r"(\d+) messages \(\d+ bytes\) consumed in \d+ms: (\d+) msgs/s", output)
    if not found or int(found[-1][0]) != records:
        raise ClientError(f"librdkafka did not consume {records} records: {output[-600:].strip()}")
    return float(found[-1][1])


def java_consume(bootstrap, topic, records):
    return [
        JAVA_TOOL, "consumer-perf-test", "--bootstrap-server", bootstrap, "--topic", topic, "--num-records", records,
        "--hide-header",
    ]  # fmt: skip


def java_consumed(output, records):
    """The rate is that of fetching, without the time that joining the group takes."""
    lines = [line.split(", ") for line in output.splitlines() if line.count(", ") == 9]
    if not lines or int(lines[-1][4]) < records:
        raise ClientError(f"the Java consumer did not consume {records} records: {output[-600:].strip()}")
    return float(lines[-1][9])


def latency(bootstrap, topic, rate, seconds, linger_ms):
    return [LIBRDKAFKA / "rdlat", bootstrap, topic, rate, seconds, LATENCY_RECORD_BYTES, "all", linger_ms]


def latencies(output, rate, seconds):
    """Median, 99th percentile (ms) and the rate that the sender kept."""
    found = re.search(r"sent=(\d+) .* received=(\d+) p50=([\d.]+) .* p99=([\d.]+) ", output)
    if not found or int(found[2]) != rate * seconds:
        raise ClientError(f"of {rate * seconds} records not all came back: {output[-600:].strip()}")
    return float(found[3]), float(found[4]), float(found[1])
