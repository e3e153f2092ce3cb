"""The rows of the tables: what is measured, with which client, on how much data, and what one measurement yields."""

import dataclasses
import time

import clients
import measure
import sides

KIB = 1024
SECTIONS = ("produce", "consume", "latency", "start", "slow-sync", "log")
JAVA, LIBRDKAFKA = "Java", "librdkafka"
RECORD_BYTES = (100, KIB)
# Records a cell: a second or two of a client's work, so that what a connection costs does not count.
PRODUCE_RECORDS = {
    (LIBRDKAFKA, 100, 128): 2_000_000,
    (LIBRDKAFKA, 100, 16): 1_000_000,
    (LIBRDKAFKA, KIB, 128): 400_000,
    (LIBRDKAFKA, KIB, 16): 150_000,
    (JAVA, 100, 128): 1_000_000,
    (JAVA, 100, 16): 400_000,
    (JAVA, KIB, 128): 200_000,
    (JAVA, KIB, 16): 60_000,
}
CONSUME_RECORDS = {100: 3_000_000, KIB: 500_000}
# Requests after which Kafka's CPU time for one hardly falls any more: its compiler is through with the hot paths.
WARM_UP_REQUESTS = 60_000
LATENCY_RATES = (1_000, 10_000)
LATENCY_LINGERS_MS = (0, 5)
LATENCY_SECONDS = 3
SLOW_SYNC_MS = 10
SLOW_SYNC_PARTITIONS = 1_000
SLOW_SYNC_SECONDS = 20


@dataclasses.dataclass(frozen=True)
class Scale:
    """`quick` is for trying the program: its figures say little. Where syncs are slow, a warm-up takes as long as its
    requests' syncs do, and is cut short.
    """

    quick: bool = False
    slow_sync: bool = False

    def records(self, records):
        return records // 10 if self.quick else records

    def seconds(self, seconds):
        return 1 if self.quick else seconds

    @property
    def warm_up_requests(self):
        return WARM_UP_REQUESTS // 10 if self.quick or self.slow_sync else WARM_UP_REQUESTS

    @property
    def slow_sync_seconds(self):
        return SLOW_SYNC_SECONDS // 4 if self.quick else SLOW_SYNC_SECONDS


@dataclasses.dataclass(frozen=True)
class Produce:
    client: str
    record_bytes: int
    acks: str
    batch_kib: int

    section = "produce"
    measured_on = (*sides.SIDES, *sides.FLOORS)

    def labels(self):
        return self.client, bytes_text(self.record_bytes), f"acks={self.acks}", f"{self.batch_kib} KiB"

    def measure(self, bench):
        """In a topic of its own, of one partition."""
        topic = "-".join(("produce", self.client, str(self.record_bytes), self.acks, str(self.batch_kib)))
        bench.create_topic(topic)
        records = bench.scale.records(PRODUCE_RECORDS[self.client, self.record_bytes, self.batch_kib])
        batch_bytes = self.batch_kib * KIB
        if self.client == JAVA:
            payloads = bench.payload_file(self.record_bytes)
            command = clients.java_produce(bench.bootstrap, topic, payloads, records, self.acks, batch_bytes)
            rate_of = clients.java_produced
        else:
            command = clients.librdkafka_produce(
                bench.bootstrap, topic, self.record_bytes, records, self.acks, batch_bytes
            )
            rate_of = clients.librdkafka_produced
        load = bench.run_producer(command, topic, records * self.record_bytes)
        return throughput(load, rate_of(load.output, records), records, self.record_bytes)


@dataclasses.dataclass(frozen=True)
class Consume:
    client: str
    record_bytes: int

    section = "consume"

    @property
    def measured_on(self):
        """The Java tool reads in a group, and a floor knows none."""
        return sides.SIDES if self.client == JAVA else (*sides.SIDES, *sides.FLOORS)

    def labels(self):
        return self.client, bytes_text(self.record_bytes)

    def measure(self, bench):
        """The topic that the warm-up filled, whole, out of the page cache."""
        topic, records = bench.filled_topic(self.record_bytes)
        if self.client == JAVA:
            command, rate_of = clients.java_consume(bench.bootstrap, topic, records), clients.java_consumed
        else:
            command, rate_of = clients.librdkafka_consume(bench.bootstrap, topic, records), clients.librdkafka_consumed
        load = bench.run(command)
        return throughput(load, rate_of(load.output, records), records, self.record_bytes)


@dataclasses.dataclass(frozen=True)
class Latency:
    rate: int
    linger_ms: int

    section = "latency"
    acks = "all"
    measured_on = sides.SIDES

    def labels(self):
        return f"{self.rate:,}/s".replace(",", " "), f"linger {self.linger_ms} ms"

    def measure(self, bench):
        topic = f"latency-{self.rate}-{self.linger_ms}"
        bench.create_topic(topic)
        seconds = bench.scale.seconds(LATENCY_SECONDS)
        load = bench.run(clients.latency(bench.bootstrap, topic, self.rate, seconds, self.linger_ms))
        p50, p99, kept = clients.latencies(load.output, self.rate, seconds)
        return {
            "p50_ms": p50,
            "p99_ms": p99,
            "sent_per_second": kept,
            "broker_cores": load.broker_cpu_seconds / load.wall_seconds,
            "other_cores": load.other_cores,
        }


@dataclasses.dataclass(frozen=True)
class SlowSync:
    """On a server of its own, whose syncs take so much longer."""

    partitions: int = SLOW_SYNC_PARTITIONS

    section = "slow-sync"
    acks = "all"
    measured_on = (sides.FSYNC, sides.KAFKA_FSYNC)

    def labels(self):
        return (f"{self.partitions:,} partitions".replace(",", " "),)

    def measure(self, bench):
        # Here, because it needs a client's library: all else of this file is read without.
        import many

        topics = many.topics_of(self.partitions)
        many.create(bench.server, topics)
        many.wait_led(bench.server, topics)
        process = bench.server.process_id()
        before, begin = measure.cpu_seconds(process), time.monotonic()
        loaded = many.load(bench.server, topics, bench.scale.slow_sync_seconds)
        cpu = measure.cpu_seconds(process) - before
        if loaded.errors:
            raise clients.ClientError(f"{len(loaded.errors)} records failed: {loaded.errors[0]}")
        return {
            "records_per_second": loaded.records_per_second,
            "p50_ms": loaded.percentile_ms(50),
            "p99_ms": loaded.percentile_ms(99),
            "threads": loaded.threads,
            "broker_cores": cpu / (time.monotonic() - begin),
            "cpu_seconds_per_million": cpu / (len(loaded.waits) / 1e6),
        }


@dataclasses.dataclass(frozen=True)
class Log:
    """A bench of the log alone: log/benches.rs."""

    name: str

    section = "log"


@dataclasses.dataclass(frozen=True)
class Start:
    """Measured where a side is started, not by a client."""

    section = "start"


def of_log(measured):
    """What a line of log-bench says, as a sample; bytes are not the point of each bench."""
    wall, cpu, calls = measured["wall_seconds"], measured["cpu_seconds"], measured["calls"]
    bytes_done = measured["bytes"]
    return {
        "mib_per_second": bytes_done / 2**20 / wall if bytes_done else None,
        "cpu_seconds_per_gib": cpu / (bytes_done / 2**30) if bytes_done else None,
        "calls_per_second": calls / wall,
        "cpu_microseconds_per_call": cpu / calls * 1e6,
    }


def throughput(load, rate, records, record_bytes):
    gibibytes = records * record_bytes / 2**30
    return {
        "records_per_second": rate,
        "mib_per_second": rate * record_bytes / 2**20,
        "cpu_seconds_per_gib": load.broker_cpu_seconds / gibibytes,
        "cpu_seconds_per_million": load.broker_cpu_seconds / (records / 1e6),
        "broker_cpu_seconds": load.broker_cpu_seconds,
        "client_cpu_seconds": load.client_cpu_seconds,
        "other_cores": load.other_cores,
    }


def bytes_text(count):
    return f"{count // KIB} KiB" if count % KIB == 0 else f"{count} B"


PRODUCE = [
    Produce(client, record_bytes, acks, batch_kib)
    for client in (LIBRDKAFKA, JAVA)
    for record_bytes in RECORD_BYTES
    for acks in ("1", "all")
    for batch_kib in (128, 16)
]
CONSUME = [Consume(client, record_bytes) for client in (LIBRDKAFKA, JAVA) for record_bytes in RECORD_BYTES]
LATENCY = [Latency(rate, linger) for linger in LATENCY_LINGERS_MS for rate in LATENCY_RATES]


def of_round(sections, turn, rounds):
    """What clients measure in a round. Each begins the produce cells elsewhere: the last meet the warmest broker."""
    produce = PRODUCE if "produce" in sections else []
    shift = turn * len(produce) // rounds
    consume = CONSUME if "consume" in sections else []
    latency = LATENCY if "latency" in sections else []
    return [*produce[shift:], *produce[:shift], *consume, *latency]
