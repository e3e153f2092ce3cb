"""What windows over rows must give, computed once more and as plainly as can be: the referee of demo.py.

Rows of one partition come in the order of its log. Stream time is the greatest event time so far, of all keys together. A
row counts in each of its windows that is open when it comes; a window is closed from the moment when stream time has
reached its end and the grace, and the row itself moves stream time first.
"""

import collections


class Windows:
    def __init__(self, size, advance, grace=0):
        self.size, self.advance, self.grace = size, advance, grace

    def of(self, time):
        """(start, end) of every window that holds the time; none begins below zero."""
        start = time - time % self.advance
        found = []
        while start >= 0 and start + self.size > time:
            found.append((start, start + self.size))
            start -= self.advance
        return found[::-1]


class Statistics:
    """Count, minimum and average as the plugin has them: sums of doubles in the order of the rows."""

    def __init__(self):
        self.count, self.minimum, self.sum = 0, float("inf"), 0.0

    def take(self, value):
        self.count += 1
        self.minimum = min(self.minimum, float(value))
        self.sum += value

    def result(self):
        return {"count": self.count, "minimum": self.minimum, "average": self.sum / self.count}


class Expected:
    """Of one partition. A window is known by (key, start, end)."""

    def __init__(self):
        # The result after each row, in their order.
        self.updates = collections.defaultdict(list)
        # The result of each window that has closed.
        self.finals = {}
        self.processed = 0
        # How often a window refused a row.
        self.late = 0
        self.stream_time = None

    @property
    def last_updates(self):
        return {window: results[-1] for window, results in self.updates.items()}


def expect(rows, windows):
    """`rows`: (key, event time, value) in the order of the partition's log."""
    expected, panes = Expected(), {}
    for key, time, value in rows:
        expected.processed += 1
        expected.stream_time = time if expected.stream_time is None else max(expected.stream_time, time)
        for start, end in windows.of(time):
            if expected.stream_time >= end + windows.grace:
                expected.late += 1
                continue
            pane = panes.setdefault((key, start, end), Statistics())
            pane.take(value)
            expected.updates[key, start, end].append(pane.result())
    for (key, start, end), pane in panes.items():
        if expected.stream_time >= end + windows.grace:
            expected.finals[key, start, end] = pane.result()
    return expected


def expect_all(rows, partitions, partition_of, windows):
    """By partition: `rows` in the order in which they went out, each to the partition that its key has."""
    by_partition = [[] for _ in range(partitions)]
    for row in rows:
        by_partition[partition_of(row[0].encode(), partitions)].append(row)
    return [expect(rows, windows) for rows in by_partition]
