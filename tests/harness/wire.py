"""A client of a few lines, for tests that must know its connection and the bytes of its batches.

Batches are written and read by hand as KIP-98 lays them out, uncompressed; requests are in the oldest versions that
Apache Kafka 4 takes.
"""

import dataclasses
import socket
import struct
import time

# Key of the API and its version.
PRODUCE = (0, 3)
FETCH = (1, 4)
LIST_OFFSETS = (2, 1)
CREATE_TOPICS = (19, 2)
DELETE_TOPICS = (20, 1)
DELETE_RECORDS = (21, 0)
INIT_PRODUCER_ID = (22, 0)
ALTER_REPLICA_LOG_DIRS = (34, 1)
DESCRIBE_LOG_DIRS = (35, 1)
EARLIEST = -2
LATEST = -1
FETCH_BYTES = 1 << 20
ADMIN_TIMEOUT_MS = 30000
CRC32C_POLYNOMIAL = 0x82F63B78


def _crc_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (CRC32C_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _crc_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def varint(number):
    """Zigzag, then seven bits a byte."""
    number = number << 1 ^ number >> 63
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def batch(value, key=None):
    """A batch that holds one record without headers."""
    return batch_of([(key, value)])


def batch_of(records, producer=(-1, -1, -1)):
    """A batch of records (key, value); the producer's id, epoch and first sequence make it idempotent."""
    body = b"".join(_record(number, key, value) for number, (key, value) in enumerate(records))
    now = int(time.time() * 1000)
    checked = struct.pack(">hiqqqhii", 0, len(records) - 1, now, now, *producer, len(records)) + body
    after_length = struct.pack(">ibI", -1, 2, crc32c(checked)) + checked
    return struct.pack(">qi", 0, len(after_length)) + after_length


def _record(number, key, value):
    length_and_key = varint(-1) if key is None else varint(len(key)) + key
    body = b"\0" + varint(0) + varint(number) + length_and_key + varint(len(value)) + value + varint(0)
    return varint(len(body)) + body


@dataclasses.dataclass
class LogOfDirectory:
    """What DescribeLogDirs says of one partition in one directory; of a copy that grows if `is_future`."""

    path: str
    topic: str
    partition: int
    size_bytes: int
    offset_lag: int
    is_future: bool


@dataclasses.dataclass
class Batch:
    base_offset: int
    last_offset: int
    size_bytes: int
    # (offset, key, value)
    records: list


def batches(data):
    """The whole batches in `data`; one whose checksum is wrong is a ValueError, one that is not whole is left out."""
    while len(data) >= 12:
        base_offset, length = struct.unpack(">qi", data[:12])
        size = 12 + length
        if len(data) < size:
            return
        magic, crc = struct.unpack(">bI", data[16:21])
        if magic != 2 or crc != crc32c(data[21:size]):
            raise ValueError(f"the batch at offset {base_offset} is damaged")
        last_offset = base_offset + struct.unpack(">i", data[23:27])[0]
        count = struct.unpack(">i", data[57:61])[0]
        yield Batch(base_offset, last_offset, size, list(_records(data[61:size], base_offset, count)))
        data = data[size:]


def _records(data, base_offset, count):
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value >> 1 ^ -(value & 1)

    def sized():
        nonlocal at
        size = number()
        if size < 0:
            return None
        at += size
        return data[at - size : at]

    for _ in range(count):
        size = number()
        end = at + size
        at += 1
        number()
        offset = base_offset + number()
        key, value = sized(), sized()
        yield offset, key, value
        at = end


class Refused(RuntimeError):
    """An answer with an error code."""

    def __init__(self, what, code):
        super().__init__(f"{what} failed with error code {code}")
        self.code = code


def _answered(what, code):
    if code != 0:
        raise Refused(what, code)


def _text(text):
    return struct.pack(">h", len(text)) + text.encode()


class _Fields:
    """An answer, read from its beginning."""

    def __init__(self, data):
        self._data = data
        self._at = 0

    def take(self, form):
        values = struct.unpack_from(form, self._data, self._at)
        self._at += struct.calcsize(form)
        return values

    def text(self):
        size = self.take(">h")[0]
        self._at += size
        return self._data[self._at - size : self._at].decode()


class Connection:
    """Sends produce requests; `produce` waits for each answer, `send` and `receive` let several be under way."""

    def __init__(self, port, timeout=60):
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        self.port = self._socket.getsockname()[1]
        self._correlation_id = 0
        # What has come, with the lengths before the frames.
        self.received_bytes = 0

    def produce(self, topic, partition, records, acks=-1):
        """The base offset that the broker has given the batch."""
        self.send(topic, partition, records, acks)
        return self.receive(topic)

    def send(self, topic, partition, records, acks=-1):
        body = struct.pack(">hhii", -1, acks, 30000, 1) + _text(topic)
        body += struct.pack(">iii", 1, partition, len(records)) + records
        self._send(PRODUCE, body)

    def receive(self, topic):
        """The base offset of the oldest batch that is not answered yet."""
        answer = self._read(struct.unpack(">i", self._read(4))[0])
        after_topic = 4 + 4 + 2 + len(topic)
        _, _, error, base_offset = struct.unpack(">iihq", answer[after_topic : after_topic + 18])
        _answered("produce", error)
        return base_offset

    def producer_id(self):
        """A new producer id, of epoch 0."""
        answer = self._ask(INIT_PRODUCER_ID, struct.pack(">hi", -1, ADMIN_TIMEOUT_MS))
        error, producer_id = struct.unpack(">hq", answer[4:14])
        _answered("init producer id", error)
        return producer_id

    def fetch(self, topic, partition, offset):
        """The bytes from the batch on that holds `offset`; none at the high watermark."""
        body = struct.pack(">iiiibi", -1, 0, 0, FETCH_BYTES, 0, 1) + _text(topic)
        body += struct.pack(">iiqi", 1, partition, offset, FETCH_BYTES)
        answer = self._ask(FETCH, body)
        at = 4 + 4 + 2 + len(topic) + 4
        _, error, _, _, aborted = struct.unpack(">ihqqi", answer[at : at + 26])
        _answered("fetch", error)
        at += 26 + 16 * max(aborted, 0)
        size = struct.unpack(">i", answer[at : at + 4])[0]
        return answer[at + 4 : at + 4 + size]

    def offset(self, topic, partition, when):
        """The log's start (EARLIEST) or its high watermark (LATEST)."""
        body = struct.pack(">ii", -1, 1) + _text(topic) + struct.pack(">iiq", 1, partition, when)
        error, _, offset = struct.unpack(">hqq", self._ask(LIST_OFFSETS, body)[-18:])
        _answered("list offsets", error)
        return offset

    def create_topic(self, topic, partitions, configs=None):
        """Of one replica a partition."""
        body = struct.pack(">i", 1) + _text(topic) + struct.pack(">ihii", partitions, 1, 0, len(configs or {}))
        for name, value in (configs or {}).items():
            body += _text(name) + _text(value)
        answer = self._ask(CREATE_TOPICS, body + struct.pack(">ib", ADMIN_TIMEOUT_MS, 0))
        at = 4 + 4 + 2 + len(topic)
        _answered(f"create topic {topic}", struct.unpack(">h", answer[at : at + 2])[0])

    def delete_topic(self, topic):
        body = struct.pack(">i", 1) + _text(topic) + struct.pack(">i", ADMIN_TIMEOUT_MS)
        _answered(f"delete topic {topic}", struct.unpack(">h", self._ask(DELETE_TOPICS, body)[-2:])[0])

    def delete_records(self, topic, partition, offset):
        """Everything below `offset`."""
        body = struct.pack(">i", 1) + _text(topic) + struct.pack(">iiqi", 1, partition, offset, ADMIN_TIMEOUT_MS)
        _answered("delete records", struct.unpack(">h", self._ask(DELETE_RECORDS, body)[-2:])[0])

    def alter_log_dirs(self, wanted):
        """Path → topic → partitions that are to lie there; gives (topic, partition) → error code."""
        body = struct.pack(">i", len(wanted))
        for path, topics in wanted.items():
            body += _text(path) + struct.pack(">i", len(topics))
            for topic, partitions in topics.items():
                body += _text(topic) + struct.pack(f">{len(partitions) + 1}i", len(partitions), *partitions)
        fields = _Fields(self._ask(ALTER_REPLICA_LOG_DIRS, body))
        fields.take(">i")
        found = {}
        for _ in range(fields.take(">i")[0]):
            topic = fields.text()
            for _ in range(fields.take(">i")[0]):
                partition, code = fields.take(">ih")
                found[topic, partition] = code
        return found

    def log_dirs(self):
        """All logs of this broker, by directory."""
        fields = _Fields(self._ask(DESCRIBE_LOG_DIRS, struct.pack(">i", -1)))
        fields.take(">i")
        found = []
        for _ in range(fields.take(">i")[0]):
            _answered("describe log dirs", fields.take(">h")[0])
            path = fields.text()
            for _ in range(fields.take(">i")[0]):
                topic = fields.text()
                for _ in range(fields.take(">i")[0]):
                    found.append(LogOfDirectory(path, topic, *fields.take(">iqq?")))
        return found

    def _send(self, api, body):
        self._correlation_id += 1
        head = struct.pack(">hhi", *api, self._correlation_id) + _text("wire")
        self._socket.sendall(struct.pack(">i", len(head) + len(body)) + head + body)

    def _ask(self, api, body):
        """The answer without its correlation id. No produce may be under way."""
        self._send(api, body)
        return self._read(struct.unpack(">i", self._read(4))[0])[4:]

    def _read(self, size):
        data = b""
        while len(data) < size:
            part = self._socket.recv(size - len(data))
            if not part:
                raise OSError("the connection was closed")
            data += part
        self.received_bytes += size
        return data

    def close(self):
        self._socket.close()
