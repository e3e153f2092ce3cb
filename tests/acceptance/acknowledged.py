"""A workload of unique values and the check of what became of them.

One idempotent producer with acks=all lives through every fault and sends unique values; each delivery report is an
acknowledgement of a value at a partition and an offset. Afterwards the topic is read whole. Every acknowledged value must
be there, once, at its offset; a value without acknowledgement may be there once or not at all; offsets never repeat.
"""

import collections
import threading
import time

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

VALUE_PADDING = "." * 200
FINISH_SECONDS_MAX = 180


def create_topic(bootstrap, topic, partitions, configs=None):
    admin = AdminClient({"bootstrap.servers": bootstrap, "logger": quiet_logger()})
    new = NewTopic(topic, num_partitions=partitions, replication_factor=1, config=configs or {})
    admin.create_topics([new])[topic].result(60)


class Workload:
    """Produces until told to stop; what is acknowledged is in `acknowledged`: value → (partition, offset).

    As fast as it goes, or about `per_second` values a second.
    """

    def __init__(self, bootstrap, topic, first=0, per_second=None):
        self._pause = 1 / per_second if per_second else 0
        self.topic = topic
        self.acknowledged = {}
        self.next = first
        self.errors = []
        self._changed = threading.Condition()
        self._running = True
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 2,
                "batch.size": 16384,
                "message.timeout.ms": 600000,
                "socket.timeout.ms": 10000,
                "reconnect.backoff.max.ms": 200,
                "retry.backoff.max.ms": 200,
                "queue.buffering.max.messages": 2000,
                "logger": quiet_logger(),
            }
        )
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        while self._running:
            value = f"{self.next}{VALUE_PADDING}".encode()
            try:
                self._producer.produce(self.topic, value, on_delivery=self._delivered)
                self.next += 1
                self._producer.poll(0)
                if self._pause:
                    time.sleep(self._pause)
            except BufferError:
                self._producer.poll(0.05)
            except KafkaException as error:
                self._failed(error)
                return

    def _delivered(self, error, message):
        if error is not None:
            self._failed(error)
            return
        with self._changed:
            number = int(message.value().split(b".", 1)[0])
            self.acknowledged[number] = (message.partition(), message.offset())
            self._changed.notify_all()

    def _failed(self, error):
        with self._changed:
            self.errors.append(str(error))
            self._changed.notify_all()

    def wait_acknowledged(self, count):
        """Until `count` more values are acknowledged; false if none came for a long time or sending failed."""
        with self._changed:
            goal = len(self.acknowledged) + count
            return self._changed.wait_for(
                lambda: self.errors or len(self.acknowledged) >= goal, FINISH_SECONDS_MAX
            ) and not self.errors

    def ends(self):
        """Per partition, the offset after the last acknowledged one."""
        ends = collections.defaultdict(int)
        with self._changed:
            for partition, offset in self.acknowledged.values():
                ends[partition] = max(ends[partition], offset + 1)
        return ends

    def abandon(self):
        """Stops sending and forgets what is under way: its fate is open."""
        self._running = False
        self._thread.join()
        self._producer.purge()
        self._producer.poll(0)

    def finish(self):
        """Stops sending and waits until all that was sent is acknowledged."""
        self._running = False
        self._thread.join()
        left = self._producer.flush(FINISH_SECONDS_MAX)
        if left:
            self.errors.append(f"{left} records were not acknowledged within {FINISH_SECONDS_MAX} s of the last start")


def quiet_logger():
    import logging

    logger = logging.getLogger("librdkafka")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    return logger


def _consumer(bootstrap):
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "checker",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "check.crcs": True,
            "logger": quiet_logger(),
        }
    )


def short_of(bootstrap, topic, ends):
    """Partitions whose high watermark lies below an acknowledged record."""
    consumer = _consumer(bootstrap)
    try:
        short = []
        for partition, end in sorted(ends.items()):
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=60)
            if high < end:
                short.append(f"partition {partition}: acknowledged up to {end}, but the log is {low}..{high}")
        return short
    finally:
        consumer.close()


def read_all(bootstrap, topic, partitions):
    """Everything in the topic: partition → [(offset, number)]."""
    consumer = _consumer(bootstrap)
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in range(partitions)])
    found = {partition: [] for partition in range(partitions)}
    at_end = set()
    deadline = time.monotonic() + FINISH_SECONDS_MAX
    try:
        while len(at_end) < partitions:
            if time.monotonic() > deadline:
                raise TimeoutError(f"read {sum(map(len, found.values()))} records, then nothing more came")
            for message in consumer.consume(1000, timeout=1):
                if message.error() is None:
                    number = int(message.value().split(b".", 1)[0])
                    found[message.partition()].append((message.offset(), number))
                    deadline = time.monotonic() + FINISH_SECONDS_MAX
                elif message.error().code() == KafkaError._PARTITION_EOF:
                    at_end.add(message.partition())
                elif not message.error().retriable():
                    raise KafkaException(message.error())
    finally:
        consumer.close()
    return found


def differences(acknowledged, found):
    """What is wrong: lost, moved, duplicated, or two records at one offset. Empty if nothing is."""
    wrong = []
    places = collections.defaultdict(list)
    for partition, records in found.items():
        last = -1
        for offset, number in records:
            if offset <= last:
                wrong.append(f"partition {partition}: offset {offset} after {last}")
            last = offset
            places[number].append((partition, offset))
    for number, where in places.items():
        if len(where) > 1:
            wrong.append(f"value {number} is there {len(where)} times: {where}")
    for number, place in acknowledged.items():
        if number not in places:
            wrong.append(f"value {number}, acknowledged at {place}, is lost")
        elif place[1] >= 0 and place not in places[number]:
            wrong.append(f"value {number}, acknowledged at {place}, is at {places[number]}")
    return wrong
