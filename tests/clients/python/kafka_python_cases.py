"""kafka-python, the client that is Python all through, against a bootstrap server."""

import logging
import threading

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic

from murmur2 import partition_of
from suite import equal, eventually, name

READ_MILLIS_MAX = 60_000

logging.getLogger("kafka").addHandler(logging.NullHandler())
logging.getLogger("kafka").propagate = False


def topic(bootstrap, partitions=1):
    """A new topic each of whose partitions answers for itself."""
    fresh = name("kp")
    client = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        client.create_topics([NewTopic(fresh, partitions, 1)])
    finally:
        client.close()
    reader = KafkaConsumer(bootstrap_servers=bootstrap)
    try:
        reader.end_offsets([TopicPartition(fresh, number) for number in range(partitions)])
    finally:
        reader.close()
    return fresh


def send(bootstrap, to, records, **settings):
    """Produces (key, value, headers, partition) tuples and returns what the broker answered for each, in order."""
    client = KafkaProducer(bootstrap_servers=bootstrap, **settings)
    try:
        futures = [
            client.send(to, value=value, key=key, headers=headers or [], partition=partition)
            for key, value, headers, partition in records
        ]
        client.flush(60)
        return [future.get(60) for future in futures]
    finally:
        client.close()


def take(client, count):
    records = []
    while len(records) < count:
        batch = client.poll(timeout_ms=READ_MILLIS_MAX, max_records=count - len(records))
        if not batch:
            raise AssertionError(f"read {len(records)} of {count} records, then nothing more came")
        for part in batch.values():
            records += part
    return records


def consumer(bootstrap, **settings):
    return KafkaConsumer(
        bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False,
        **{"heartbeat_interval_ms": 300, **settings},
    )


def read(bootstrap, from_topic, count, partitions=1):
    client = consumer(bootstrap)
    try:
        client.assign([TopicPartition(from_topic, number) for number in range(partitions)])
        return take(client, count)
    finally:
        client.close()


def add_to(suite):
    case = suite.case

    def codec_case(codec):
        def body(bootstrap):
            to = topic(bootstrap)
            values = [f"value {number} ".encode() + b"ab" * (number % 50) for number in range(300)]
            send(bootstrap, to, [(None, value, None, 0) for value in values], compression_type=codec, linger_ms=50)
            equal(values, [record.value for record in read(bootstrap, to, 300)], "values")

        return body

    # Snappy, lz4 and zstd need packages that kafka-python does not bring; what it brings is tried.
    for codec in (None, "gzip"):
        suite.add("core", f"kafka_python_records_arrive_compressed_by_{codec or 'none'}", codec_case(codec))

    @case("core")
    def kafka_python_keys_headers_and_nulls_arrive(bootstrap):
        to = topic(bootstrap)
        headers = [("a", b"1"), ("a", b"2")]
        send(bootstrap, to, [(b"k", b"v", headers, 0), (b"k", None, None, 0)])
        first, second = read(bootstrap, to, 2)
        equal((b"k", b"v", headers), (first.key, first.value, list(first.headers)), "first")
        equal((b"k", None), (second.key, second.value), "second")

    @case("core")
    def kafka_python_maps_keys_like_java(bootstrap):
        to = topic(bootstrap, 7)
        keys = [f"key-{number}".encode() for number in range(200)]
        answers = send(bootstrap, to, [(key, b"v", None, None) for key in keys])
        equal([partition_of(key, 7) for key in keys], [answer.partition for answer in answers], "partitions")

    @case("core")
    def kafka_python_finds_offsets(bootstrap):
        to = topic(bootstrap)
        send(bootstrap, to, [(None, b"v", None, 0)] * 3)
        partition = TopicPartition(to, 0)
        client = consumer(bootstrap)
        try:
            equal({partition: 0}, client.beginning_offsets([partition]), "beginning")
            equal({partition: 3}, client.end_offsets([partition]), "end")
            equal(0, client.offsets_for_times({partition: 1})[partition].offset, "by time")
            equal({0}, client.partitions_for_topic(to), "partitions")
        finally:
            client.close()

    @case("groups")
    def kafka_python_group_goes_on_where_it_committed(bootstrap):
        to, group = topic(bootstrap), name("g")
        send(bootstrap, to, [(None, str(number).encode(), None, 0) for number in range(10)])
        for expected in (range(0, 6), range(6, 10)):
            client = consumer(bootstrap, group_id=group)
            try:
                client.subscribe([to])
                values = [record.value for record in take(client, len(expected))]
                equal([str(number).encode() for number in expected], values, "values")
                client.commit()
            finally:
                client.close()

    @case("groups")
    def kafka_python_members_share_partitions(bootstrap):
        to, group = topic(bootstrap, 4), name("g")
        first, second = (Member(bootstrap, group, to) for _ in range(2))
        try:
            eventually("two partitions each", lambda: (first.owned, second.owned) == (2, 2))
            second.close()
            eventually("the other has all", lambda: first.owned == 4)
        finally:
            first.close()
            second.close()


class Member:
    """A consumer that polls in a thread of its own: members of a group must take part at the same time."""

    def __init__(self, bootstrap, group, of):
        self.owned = 0
        self._running = True
        self._thread = threading.Thread(target=self._run, args=(bootstrap, group, of), daemon=True)
        self._thread.start()

    def _run(self, bootstrap, group, of):
        # A leader that joins before it knows the topic assigns nothing, and looks again only with its next metadata.
        client = consumer(bootstrap, group_id=group, metadata_max_age_ms=1000)
        try:
            client.partitions_for_topic(of)
            client.subscribe([of])
            while self._running:
                client.poll(timeout_ms=100)
                self.owned = len(client.assignment())
        finally:
            client.close()

    def close(self):
        self._running = False
        self._thread.join()
