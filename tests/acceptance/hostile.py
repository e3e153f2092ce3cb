"""What the tests with hostile frames ask of a node: its memory, and whether it still serves."""

import pathlib

import acknowledged
import confluent_kafka
import confluent_kafka.admin

GROWTH_KIB_MAX = 32 * 1024
WAIT_SECONDS = 30


def client(bootstrap):
    return {"bootstrap.servers": bootstrap, "logger": acknowledged.quiet_logger()}


def memory_kib(process_id, field):
    for line in pathlib.Path(f"/proc/{process_id}/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1])
    raise RuntimeError(f"no {field} of process {process_id}")


def create_topic(bootstrap, topic, configs=None):
    """One partition; gives the topic's id, as Kafka writes it."""
    admin = confluent_kafka.admin.AdminClient(client(bootstrap))
    new = confluent_kafka.admin.NewTopic(topic, 1, 1, config=configs or {})
    admin.create_topics([new])[topic].result(WAIT_SECONDS)
    described = admin.describe_topics(confluent_kafka.TopicCollection([topic]))[topic].result(WAIT_SECONDS)
    # The client has the other base64 alphabet.
    return str(described.topic_id).replace("+", "-").replace("/", "_")


def produce(bootstrap, topic, values):
    """Acknowledged by all; gives value by offset."""
    acknowledged = {}

    def delivered(error, message):
        if error is None:
            acknowledged[message.offset()] = message.value()

    producer = confluent_kafka.Producer({**client(bootstrap), "acks": "all"})
    for value in values:
        producer.produce(topic, value, on_delivery=delivered)
    producer.flush(WAIT_SECONDS)
    return acknowledged


def read(bootstrap, topic, count):
    """The first `count` records from offset 0 on, value by offset; fewer if no more come."""
    consumer = confluent_kafka.Consumer({**client(bootstrap), "group.id": "reader"})
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    found = {}
    while len(found) < count:
        message = consumer.poll(WAIT_SECONDS)
        if message is None or message.error():
            break
        found[message.offset()] = message.value()
    consumer.close()
    return found


def end_offset(bootstrap, topic):
    consumer = confluent_kafka.Consumer({**client(bootstrap), "group.id": "reader"})
    _, high = consumer.get_watermark_offsets(confluent_kafka.TopicPartition(topic, 0), timeout=WAIT_SECONDS)
    consumer.close()
    return high


def serves(bootstrap):
    """A topic is made, a record written and read back, by a client that has nothing to do with the frames."""
    create_topic(bootstrap, "afterwards")
    written = produce(bootstrap, "afterwards", [b"still here"])
    return len(written) == 1 and read(bootstrap, "afterwards", 1) == written
