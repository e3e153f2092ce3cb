"""Topics of many partitions: created, waited for, and loaded by a producer that has a record under way for each.

Needs the venv of the Python clients.
"""

import dataclasses
import logging
import pathlib
import threading
import time

import confluent_kafka
import confluent_kafka.admin

import server as harness

PARTITIONS_A_TOPIC = 1000
WAIT_SECONDS = 600
LOAD_RECORD_BYTES = 100


def quiet(config):
    """Not to hear of each connection that a server's end has closed."""
    logger = logging.getLogger("librdkafka")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    return {**config, "logger": logger}


def admin(server):
    return confluent_kafka.admin.AdminClient(quiet({"bootstrap.servers": server.bootstrap}))


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
    wanted = {confluent_kafka.TopicPartition(name, number): latest for name, number in places_of(topics)}
    for answer in client.list_offsets(wanted, request_timeout=WAIT_SECONDS).values():
        try:
            answer.result(WAIT_SECONDS)
        except confluent_kafka.KafkaException:
            return False
    return True


def wait_led(server, topics):
    client = admin(server)
    harness.wait_for(lambda: are_led(client, topics), f"{server.name}: all partitions led", WAIT_SECONDS)


@dataclasses.dataclass(frozen=True)
class Loaded:
    """What became of a load: how long each record waited for its acknowledgement, in the order of that."""

    waits: list
    errors: list
    seconds: float
    # Of the server, when the last record had been sent.
    threads: int

    @property
    def records_per_second(self):
        return len(self.waits) / self.seconds

    def percentile_ms(self, percent):
        return self.waits[len(self.waits) * percent // 100] * 1000


def load(server, topics, seconds):
    """Closed loop, acks=all: for each partition one record at a time is under way, sent to the partitions by turns.

    Ends when all that was sent in that time is acknowledged.
    """
    places = places_of(topics)
    producer = confluent_kafka.Producer(
        quiet({"bootstrap.servers": server.bootstrap, "acks": "all", "linger.ms": 0})
    )
    under_way = threading.Semaphore(len(places))
    waits, errors = [], []

    def delivered(begin):
        def told(error, _message):
            under_way.release()
            if error is not None:
                errors.append(error)
            waits.append(time.monotonic() - begin)

        return told

    value = b"x" * LOAD_RECORD_BYTES
    begin, sent = time.monotonic(), 0
    while time.monotonic() - begin < seconds:
        while not under_way.acquire(blocking=False):
            producer.poll(0.01)
        name, partition = places[sent % len(places)]
        producer.produce(name, value, partition=partition, on_delivery=delivered(time.monotonic()))
        producer.poll(0)
        sent += 1
    threads = len(list(pathlib.Path(f"/proc/{server.process_id()}/task").iterdir()))
    if producer.flush(WAIT_SECONDS):
        raise harness.ServerError(f"{server.name}: records were not acknowledged within {WAIT_SECONDS} s")
    return Loaded(sorted(waits), errors, time.monotonic() - begin, threads)
