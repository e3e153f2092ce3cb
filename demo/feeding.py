"""Replays a data set into a topic, each row once, whatever breaks on the way.

The feed says into which partition a row goes: the one that Kafka's clients would choose by its key. So the rows of a
partition are known in advance, and the partition's end says how many of them are there: that is all the feed has to know
to go on, after a restart of the feed as after an answer that did not come. (It is the only one that writes to the topic.
If somebody else does, as many of its rows are passed over.)
"""

import time

from door import Unreachable
from murmur2 import partition_of

ROWS_PER_REQUEST_MAX = 500
"""How often a paced feed sends what has become due, and how long a feed waits before it asks again for a lost node."""
TICK_SECONDS = 0.25
FULL_SPEED = float("inf")


class Feed:
    def __init__(self, door, data, rows_per_second, rounds=None, topic=None):
        """`rounds` None is without end."""
        self.topic = topic or data.name
        self._door = door
        self._data = data
        self._rate = rows_per_second
        self._rounds = rounds
        self._partitions = None
        self._next = []

    def _find_partitions(self, count):
        """Of each partition, the places of its rows in the data set."""
        self._partitions = [[] for _ in range(count)]
        for index, row in enumerate(self._data.rows):
            self._partitions[partition_of(row.key.encode(), count)].append(index)

    def resume(self):
        """Finds out which rows are there."""
        self._next = self._door.ends(self.topic)
        if self._partitions is None or len(self._partitions) != len(self._next):
            self._find_partitions(len(self._next))

    def _peek(self):
        """The row that is next in the order of the data set: its number over all rounds, and its partition."""
        best = None
        for partition, indices in enumerate(self._partitions):
            if indices:
                number, place = divmod(self._next[partition], len(indices))
                candidate = (number * len(self._data) + indices[place], partition)
                best = candidate if best is None else min(best, candidate)
        if self._rounds is not None and best[0] >= self._rounds * len(self._data):
            return None
        return best

    @property
    def sent(self):
        """How many rows are there."""
        return sum(self._next)

    @property
    def is_over(self):
        return self._peek() is None

    def _take(self, count):
        records = []
        while len(records) < count and (found := self._peek()) is not None:
            number, partition = found
            number, index = divmod(number, len(self._data))
            value = self._data.value(index, number)
            # The value is JSON already: it goes into the body as it is.
            records.append((self._data.rows[index].key, value, partition))
            self._next[partition] += 1
        return records

    def send(self, count):
        """Sends the next rows, at most so many; says how many. If there is no answer: Unreachable, then `resume`."""
        records = self._take(min(count, ROWS_PER_REQUEST_MAX))
        if not records:
            return 0
        body = ",".join(
            f'{{"key":"{key}","partition":{partition},"value":{value}}}' for key, value, partition in records
        )
        status, answer = self._door.call("POST", f"/api/v1/topics/{self.topic}/records", f'{{"records":[{body}]}}')
        if status != 200:
            errors = [one["error"]["detail"] for one in answer["offsets"] if "error" in one]
            raise Unreachable(f"{len(errors)} of {len(records)} rows were not written: {errors[0]}")
        return len(records)

    def run(self, stop, say):
        """Feeds until `stop` (an Event) is set or the rounds are over. A node that is away is waited for."""
        lost = False
        while not stop.is_set():
            try:
                self.resume()
                if lost:
                    say(f"{self.topic}: goes on after {self.sent} rows")
                lost = False
                self._run_connected(stop)
                return
            except Unreachable as error:
                if not lost and not stop.is_set():
                    say(f"{self.topic}: {error}; waiting for the node")
                lost = True
                stop.wait(TICK_SECONDS)

    def _run_connected(self, stop):
        begin, sent = time.monotonic(), 0
        while not stop.is_set() and not self.is_over:
            if self._rate == FULL_SPEED:
                sent += self.send(ROWS_PER_REQUEST_MAX)
                continue
            due = int((time.monotonic() - begin) * self._rate) - sent
            if due <= 0:
                stop.wait(TICK_SECONDS)
            else:
                sent += self.send(due)
