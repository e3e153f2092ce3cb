"""confluent-kafka, that is librdkafka, against a bootstrap server."""

import functools
import logging
import time

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from murmur2 import partition_of
from suite import equal, eventually, name

READ_SECONDS_MAX = 60
# What may be said of a partition for a moment after its topic was created.
NOT_YET = (
    KafkaError._NOENT,
    KafkaError._TIMED_OUT,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
)
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

quiet = logging.getLogger("librdkafka")
quiet.addHandler(logging.NullHandler())
quiet.propagate = False


@functools.lru_cache
def admin(bootstrap):
    return AdminClient({"bootstrap.servers": bootstrap, "logger": quiet})


def topic(bootstrap, partitions=1, **configs):
    """A new topic each of whose partitions answers for itself."""
    fresh = name("rd")
    config = {key.replace("_", "."): str(value) for key, value in configs.items()}
    client = admin(bootstrap)
    client.create_topics([NewTopic(fresh, partitions, 1, config=config)])[fresh].result(60)
    eventually("every partition answers", lambda: _answer(bootstrap, fresh, partitions))
    return fresh


def _answer(bootstrap, of, partitions):
    # A client of its own each time: one that has heard that a topic is unknown may keep to that for a while.
    client = AdminClient({"bootstrap.servers": bootstrap, "logger": quiet})
    ends = {TopicPartition(of, partition): OffsetSpec.latest() for partition in range(partitions)}
    try:
        for future in client.list_offsets(ends, request_timeout=10).values():
            future.result(60)
    except KafkaException as error:
        if error.args[0].code() in NOT_YET:
            return False
        raise
    return True


def producer(bootstrap, **settings):
    return Producer({"bootstrap.servers": bootstrap, "logger": quiet, **_dotted(settings)})


def consumer(bootstrap, group="unused", **settings):
    defaults = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "heartbeat.interval.ms": 300,
        "check.crcs": True,
        "logger": quiet,
    }
    return Consumer({**defaults, **_dotted(settings)})


def _dotted(settings):
    return {key.replace("_", "."): value for key, value in settings.items()}


def send(bootstrap, to, records, **settings):
    """Produces (key, value, headers, partition) tuples and returns (partition, offset) of each, in order."""
    client = producer(bootstrap, **settings)
    places = {}
    errors = []

    def delivered(index):
        def report(error, message):
            if error is not None:
                errors.append(error)
            else:
                places[index] = (message.partition(), message.offset())

        return report

    for index, (key, value, headers, partition) in enumerate(records):
        client.produce(
            to, value, key, partition=-1 if partition is None else partition, headers=headers,
            on_delivery=delivered(index),
        )
        client.poll(0)
    left = client.flush(READ_SECONDS_MAX)
    if errors or left:
        raise AssertionError(f"{left} not delivered, errors: {errors[:3]}")
    return [places[index] for index in range(len(records))]


def take(client, count):
    records = []
    waited = 0
    while len(records) < count:
        message = client.poll(1)
        if message is None:
            waited += 1
            if waited > READ_SECONDS_MAX:
                raise AssertionError(f"read {len(records)} of {count} records, then nothing more came")
        elif message.error():
            if not message.error().retriable():
                raise KafkaException(message.error())
        else:
            waited = 0
            records.append(message)
    return records


def read(bootstrap, from_topic, count, partitions=1):
    client = consumer(bootstrap)
    try:
        client.assign([TopicPartition(from_topic, number, OFFSET_BEGINNING) for number in range(partitions)])
        return take(client, count)
    finally:
        client.close()


def add_to(suite):
    case = suite.case

    def codec_case(codec):
        def body(bootstrap):
            to = topic(bootstrap)
            values = [f"value {number} ".encode() + b"ab" * (number % 100) for number in range(1000)]
            records = [(None, value, None, 0) for value in values]
            send(bootstrap, to, records, compression_type=codec, linger_ms=50)
            equal(values, [message.value() for message in read(bootstrap, to, 1000)], "values")

        return body

    for codec in CODECS:
        suite.add("core", f"librdkafka_records_arrive_compressed_by_{codec}", codec_case(codec))

    def acks_case(acks):
        def body(bootstrap):
            to = topic(bootstrap)
            send(bootstrap, to, [(None, str(number).encode(), None, 0) for number in range(100)], acks=acks)
            values = [message.value() for message in read(bootstrap, to, 100)]
            equal([str(number).encode() for number in range(100)], values, "values")

        return body

    for acks in (0, 1, -1):
        suite.add("core", f"librdkafka_records_arrive_with_acks_{'all' if acks < 0 else acks}", acks_case(acks))

    @case("core")
    def librdkafka_idempotent_producer_gets_consecutive_offsets(bootstrap):
        to = topic(bootstrap)
        records = [(None, str(number).encode(), None, 0) for number in range(2000)]
        places = send(bootstrap, to, records, enable_idempotence=True, linger_ms=0, batch_num_messages=7)
        equal([(0, number) for number in range(2000)], places, "places")

    @case("core")
    def librdkafka_keys_headers_and_nulls_arrive(bootstrap):
        to = topic(bootstrap)
        headers = [("a", b"1"), ("a", b"2"), ("none", None), ("empty", b"")]
        send(bootstrap, to, [(b"k", b"v", headers, 0), (None, b"", None, 0), (b"", None, None, 0)])
        first, second, third = read(bootstrap, to, 3)
        equal((b"k", b"v", headers), (first.key(), first.value(), first.headers()), "first")
        equal((None, b""), (second.key(), second.value()), "second")
        equal((b"", None), (third.key(), third.value()), "third")

    @case("core")
    def librdkafka_murmur2_random_maps_keys_like_java(bootstrap):
        to = topic(bootstrap, 7)
        keys = [f"key-{number}".encode() for number in range(200)]
        places = send(bootstrap, to, [(key, b"v", None, None) for key in keys], partitioner="murmur2_random")
        equal([partition_of(key, 7) for key in keys], [partition for partition, _ in places], "partitions")

    @case("core")
    def librdkafka_finds_watermarks_and_offsets_for_times(bootstrap):
        to = topic(bootstrap)
        client = producer(bootstrap)
        base = int(time.time() * 1000) - 100_000
        for timestamp in (base, base + 1000, base + 500):
            client.produce(to, b"v", partition=0, timestamp=timestamp)
            client.flush(READ_SECONDS_MAX)
        reader = consumer(bootstrap)
        try:
            equal((0, 3), reader.get_watermark_offsets(TopicPartition(to, 0), timeout=30), "watermarks")
            for timestamp, offset in ((1, 0), (base + 1, 1), (base + 1001, -1)):
                found = reader.offsets_for_times([TopicPartition(to, 0, timestamp)], timeout=30)[0]
                equal(offset, found.offset, f"offset at {timestamp}")
        finally:
            reader.close()

    @case("core")
    def librdkafka_reads_the_end_of_a_partition(bootstrap):
        to = topic(bootstrap)
        send(bootstrap, to, [(None, b"v", None, 0)])
        client = consumer(bootstrap, enable_partition_eof=True)
        try:
            client.assign([TopicPartition(to, 0, OFFSET_BEGINNING)])
            seen = []
            eventually("a record and the end", lambda: _poll_into(client, seen) and len(seen) == 2)
            equal(b"v", seen[0].value(), "value")
            equal(KafkaError._PARTITION_EOF, seen[1].error().code(), "then the end")
        finally:
            client.close()

    @case("core")
    def librdkafka_large_record_arrives_and_oversized_one_is_refused(bootstrap):
        to = topic(bootstrap)
        send(bootstrap, to, [(None, b"x" * 900_000, None, 0)])
        equal(900_000, len(read(bootstrap, to, 1)[0].value()), "size")
        try:
            send(bootstrap, to, [(None, b"x" * 1_200_000, None, 0)], message_max_bytes=5_000_000)
        except AssertionError as error:
            equal(True, "MSG_SIZE_TOO_LARGE" in str(error), f"refused as too large: {error}")
        else:
            raise AssertionError("an oversized record was taken")

    @case("core")
    def librdkafka_lists_topics_and_describes_the_cluster(bootstrap):
        to = topic(bootstrap, 3)
        listed = admin(bootstrap).list_topics(timeout=30)
        equal(3, len(listed.topics[to].partitions), "partitions")
        equal(1, len(listed.brokers), "brokers")
        cluster = admin(bootstrap).describe_cluster().result(30)
        equal(22, len(cluster.cluster_id), "length of the cluster id")

    @case("core")
    def librdkafka_deletes_a_topic(bootstrap):
        to = topic(bootstrap)
        admin(bootstrap).delete_topics([to])[to].result(30)
        eventually("it is gone", lambda: to not in admin(bootstrap).list_topics(timeout=30).topics)

    @case("groups")
    def librdkafka_group_goes_on_where_it_committed(bootstrap):
        to, group = topic(bootstrap), name("g")
        send(bootstrap, to, [(None, str(number).encode(), None, 0) for number in range(10)])
        for expected in (range(0, 6), range(6, 10)):
            client = consumer(bootstrap, group)
            try:
                client.subscribe([to])
                messages = take(client, len(expected))[: len(expected)]
                equal([str(number).encode() for number in expected], [one.value() for one in messages], "values")
                client.commit(message=messages[-1], asynchronous=False)
            finally:
                client.close()

    def strategy_case(strategy):
        def body(bootstrap):
            to, group = topic(bootstrap, 4), name("g")
            members = [consumer(bootstrap, group, partition_assignment_strategy=strategy) for _ in range(2)]
            try:
                for member in members:
                    member.subscribe([to])
                eventually("two partitions each", lambda: _owned(members) == [2, 2])
                members.pop().close()
                eventually("the other has all", lambda: _owned(members) == [4])
            finally:
                for member in members:
                    member.close()

        return body

    for strategy in ("range", "roundrobin", "cooperative-sticky"):
        suite.add("groups", f"librdkafka_members_share_partitions_by_{strategy}", strategy_case(strategy))

    @case("groups")
    def librdkafka_committed_metadata_comes_back(bootstrap):
        to = topic(bootstrap)
        client = consumer(bootstrap, name("g"))
        try:
            client.commit(offsets=[TopicPartition(to, 0, 5, metadata="a note")], asynchronous=False)
            found = client.committed([TopicPartition(to, 0)], timeout=30)[0]
            equal((5, "a note"), (found.offset, found.metadata), "committed")
        finally:
            client.close()

    @case("groups")
    def librdkafka_describes_lists_and_deletes_a_group(bootstrap):
        to, group = topic(bootstrap), name("g")
        client = consumer(bootstrap, group)
        client.subscribe([to])
        eventually("it has its partition", lambda: _owned([client]) == [1])
        described = admin(bootstrap).describe_consumer_groups([group])[group].result(30)
        equal("STABLE", described.state.name, "state")
        equal(1, len(described.members), "members")
        client.close()
        groups = admin(bootstrap).list_consumer_groups().result(30).valid
        equal(True, group in [one.group_id for one in groups], "listed")
        admin(bootstrap).delete_consumer_groups([group])[group].result(30)

    @case("configs")
    def librdkafka_adds_partitions(bootstrap):
        to = topic(bootstrap)
        admin(bootstrap).create_partitions([NewPartitions(to, 3)])[to].result(30)
        eventually("three", lambda: len(admin(bootstrap).list_topics(to, timeout=30).topics[to].partitions) == 3)

    @case("configs")
    def librdkafka_describes_and_alters_topic_configs(bootstrap):
        to = topic(bootstrap)
        change = ConfigEntry("retention.ms", "3600000", incremental_operation=AlterConfigOpType.SET)
        altered = ConfigResource(ResourceType.TOPIC, to, incremental_configs=[change])
        admin(bootstrap).incremental_alter_configs([altered])[altered].result(30)

        def value():
            asked = ConfigResource(ResourceType.TOPIC, to)
            return admin(bootstrap).describe_configs([asked])[asked].result(30)["retention.ms"].value

        eventually("altered", lambda: value() == "3600000")

    @case("configs")
    def librdkafka_deletes_records(bootstrap):
        to = topic(bootstrap)
        send(bootstrap, to, [(None, str(number).encode(), None, 0) for number in range(5)])
        asked = TopicPartition(to, 0, 3)
        equal(3, admin(bootstrap).delete_records([asked])[asked].result(30).low_watermark, "low watermark")
        equal([b"3", b"4"], [message.value() for message in read(bootstrap, to, 2)], "left")


def _poll_into(client, seen):
    message = client.poll(0.5)
    if message is not None:
        seen.append(message)
    return True


def _owned(members):
    """How many partitions each owns; polling is what makes them take part."""
    for member in members:
        message = member.poll(0.1)
        if message is not None and message.error() and not message.error().retriable():
            raise KafkaException(message.error())
    return sorted(len(member.assignment()) for member in members)
