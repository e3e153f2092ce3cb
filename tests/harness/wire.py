"""A produce client of a few lines, for tests that must know its connection and the bytes of its batches.

One batch of one record, written by hand as KIP-98 lays it out, in Produce version 3.
"""

import socket
import struct
import time

PRODUCE = 0
VERSION = 3
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
    written_key = varint(-1) if key is None else varint(len(key)) + key
    body = b"\0" + varint(0) + varint(0) + written_key + varint(len(value)) + value + varint(0)
    record = varint(len(body)) + body
    now = int(time.time() * 1000)
    checked = struct.pack(">hiqqqhii", 0, 0, now, now, -1, -1, -1, 1) + record
    after_length = struct.pack(">ibI", -1, 2, crc32c(checked)) + checked
    return struct.pack(">qi", 0, len(after_length)) + after_length


def _text(text):
    return struct.pack(">h", len(text)) + text.encode()


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
        self._correlation_id += 1
        head = struct.pack(">hhi", PRODUCE, VERSION, self._correlation_id) + _text("wire")
        body = struct.pack(">hhii", -1, acks, 30000, 1) + _text(topic)
        body += struct.pack(">iii", 1, partition, len(records)) + records
        self._socket.sendall(struct.pack(">i", len(head) + len(body)) + head + body)

    def receive(self, topic):
        """The base offset of the oldest batch that is not answered yet."""
        answer = self._read(struct.unpack(">i", self._read(4))[0])
        after_topic = 4 + 4 + 2 + len(topic)
        _, _, error, base_offset = struct.unpack(">iihq", answer[after_topic : after_topic + 18])
        if error != 0:
            raise RuntimeError(f"produce failed with error code {error}")
        return base_offset

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
