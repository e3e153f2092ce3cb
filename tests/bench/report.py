"""The tables and the verdicts: medians of the rounds, and how ours stand to Kafka's. Nothing here measures."""

import dataclasses
import statistics

import cells
import sides

MISSING = "–"
FAILED = "failed"
OURS = [side for side in sides.SIDES if side.ours]
# A sender that falls behind its rate measures itself.
RATE_KEPT_MIN = 0.98


class Results:
    """What was measured: for each cell and side one sample a round, and what failed to run."""

    def __init__(self):
        self.samples = {}
        self.failures = []

    def add(self, cell, side, sample):
        self.samples.setdefault((cell, side.key), []).append(sample)

    def fail(self, cell, side, reason):
        self.failures.append((cell, side.key, reason))

    def failed(self, cell, side):
        return any((cell, side.key) == failure[:2] for failure in self.failures)

    def median(self, cell, side, metric):
        """None where nothing was measured, or where a round of it failed: no cell shows half of its rounds."""
        values = [sample[metric] for sample in self.samples.get((cell, side.key), [])]
        if self.failed(cell, side) or not values or None in values:
            return None
        return statistics.median(values)

    def ratio(self, cell, side, metric, other=None):
        """Ours to another's: to the side named, else to the Kafka that promises the same in that cell."""
        other = other or counterpart(cell, side)
        ours, others = self.median(cell, side, metric), self.median(cell, other, metric)
        return None if ours is None or not others else ours / others

    def text(self, cell, side, metric):
        value = self.median(cell, side, metric)
        if value is None:
            return FAILED if self.failed(cell, side) else MISSING
        return number(value)

    def other_cores(self):
        return [sample["other_cores"] for found in self.samples.values() for sample in found if "other_cores" in sample]

    def senders_behind(self):
        """Latency cells in which the client did not keep its rate in some round."""
        return [
            (cell, side)
            for (cell, side), samples in self.samples.items()
            if isinstance(cell, cells.Latency)
            and any(sample["sent_per_second"] < cell.rate * RATE_KEPT_MIN for sample in samples)
        ]


def floor_of(cell, side):
    """The floor that waits for a sync where this side of ours does."""
    return sides.FLOOR_FSYNC if counterpart(cell, side) == sides.KAFKA_FSYNC else sides.FLOOR


def counterpart(cell, side):
    """Which of Kafka's sides promises by an acknowledgement what this one of ours does: only acks=all waits for a sync."""
    return sides.KAFKA_FSYNC if side == sides.FSYNC and getattr(cell, "acks", None) == "all" else sides.KAFKA


def number(value):
    """Three digits that count."""
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def ratio_text(value):
    return MISSING if value is None else f"{value:.2f}×"


@dataclasses.dataclass(frozen=True)
class Group:
    """Columns under one title."""

    title: str
    columns: list


def side_groups(columns):
    return [Group(side.title, columns) for side in sides.SIDES]


def ratio_group(title):
    return Group(title, [side.key for side in OURS])


def table(label_count, groups, rows):
    """Rows of labels, then of texts in the groups' order; labels to the left, figures to the right."""
    heads = [""] * label_count + [column for group in groups for column in group.columns]
    widths = [max(len(row[index]) for row in [heads, *rows]) for index in range(len(heads))]
    first = label_count
    for group in groups:
        # A title wider than its columns widens the first of them.
        wide = sum(widths[first : first + len(group.columns)]) + 2 * (len(group.columns) - 1)
        widths[first] += max(0, len(group.title) - wide)
        first += len(group.columns)

    def line(row):
        parts = ["  ".join(row[index].ljust(widths[index]) for index in range(label_count))]
        first = label_count
        for group in groups:
            last = first + len(group.columns)
            parts.append("  ".join(row[index].rjust(widths[index]) for index in range(first, last)))
            first = last
        return " | ".join(parts).rstrip()

    titles, first = [" " * (sum(widths[:label_count]) + 2 * (label_count - 1))], label_count
    for group in groups:
        last = first + len(group.columns)
        titles.append(group.title.ljust(sum(widths[first:last]) + 2 * (last - first - 1)))
        first = last
    return [" | ".join(titles).rstrip(), line(heads), *map(line, rows)]


def throughput_table(results, rows):
    metrics = ("mib_per_second", "cpu_seconds_per_gib", "cpu_seconds_per_million")
    groups = [
        *side_groups(["MiB/s", "s/GiB", "s/M"]), ratio_group("CPU to Kafka's"), Group("to page cache", ["fsync"]),
        Group("floor, s/GiB", [side.key for side in OURS]), ratio_group("CPU to the floor's"), ratio_group("met by"),
    ]  # fmt: skip
    lines = []
    for row in rows:
        figures = [results.text(row, side, metric) for side in sides.SIDES for metric in metrics]
        ratios = [ratio_text(results.ratio(row, side, "cpu_seconds_per_million")) for side in OURS]
        ratios.append(ratio_text(results.ratio(row, sides.FSYNC, "cpu_seconds_per_million", sides.KAFKA)))
        floors = [floor_of(row, side) for side in OURS]
        ratios += [results.text(row, floor, "cpu_seconds_per_gib") for floor in floors]
        for side, floor in zip(OURS, floors):
            ratios.append(ratio_text(results.ratio(row, side, "cpu_seconds_per_million", floor)))
        ratios += [met_by(results, row, side) for side in OURS]
        lines.append([*row.labels(), *figures, *ratios])
    return table(len(rows[0].labels()), groups, lines)


def latency_table(results):
    metrics = ("p50_ms", "p99_ms", "broker_cores")
    groups = [*side_groups(["p50", "p99", "cores"]), ratio_group("p50 to Kafka's"), ratio_group("p99 to Kafka's")]
    lines = []
    for row in cells.LATENCY:
        figures = [results.text(row, side, metric) for side in sides.SIDES for metric in metrics]
        ratios = [ratio_text(results.ratio(row, side, metric)) for metric in metrics[:2] for side in OURS]
        lines.append([*row.labels(), *figures, *ratios])
    return table(2, groups, lines)


START_METRICS = (
    ("ready_http_ms", "start to ready, /health/ready, ms"),
    ("ready_kafka_ms", "start to ready, Metadata over TCP, ms"),
    ("resident_mib", "resident memory 10 s after, MiB"),
)


def start_table(results):
    cell = cells.Start()
    groups = [*[Group(side.title, [""]) for side in sides.SIDES], ratio_group("to Kafka's")]
    lines = []
    for metric, label in START_METRICS:
        figures = [results.text(cell, side, metric) for side in sides.SIDES]
        lines.append([label, *figures, *[ratio_text(results.ratio(cell, side, metric)) for side in OURS]])
    return table(1, groups, lines)


def slow_sync_table(results):
    cell = cells.SlowSync()
    columns = {
        "records_per_second": "records/s",
        "p50_ms": "p50",
        "p99_ms": "p99",
        "threads": "threads",
        "broker_cores": "cores",
        "cpu_seconds_per_million": "s/M",
    }
    groups = [Group(side.title, [*columns.values()]) for side in cell.measured_on]
    groups.append(Group("to Kafka's", ["records/s", "p99", "s/M"]))
    figures = [results.text(cell, side, metric) for side in cell.measured_on for metric in columns]
    ratios = [
        ratio_text(results.ratio(cell, sides.FSYNC, metric))
        for metric in ("records_per_second", "p99_ms", "cpu_seconds_per_million")
    ]
    return table(1, groups, [[*cell.labels(), *figures, *ratios]])


LOG_COLUMNS = {
    "mib_per_second": "MiB/s",
    "cpu_seconds_per_gib": "CPU s/GiB",
    "calls_per_second": "calls/s",
    "cpu_microseconds_per_call": "CPU µs/call",
}


def log_table(results):
    groups = [Group(sides.LOG.title, [*LOG_COLUMNS.values()])]
    rows = [cell for cell, side in results.samples if side == sides.LOG.key]
    lines = [[cell.name, *(results.text(cell, sides.LOG, metric) for metric in LOG_COLUMNS)] for cell in rows]
    return table(1, groups, lines) if lines else [FAILED]


def tables(results, sections):
    """Each section with its heading."""
    lines = []
    if "produce" in sections:
        lines += ["", "Produce: broker CPU (user + system) per GiB of values and per million records; 1 partition"]
        lines += throughput_table(results, cells.PRODUCE)
    if "consume" in sections:
        lines += ["", "Consume, from the page cache; batches of up to 1 MB"]
        lines += throughput_table(results, cells.CONSUME)
    if "latency" in sections:
        lines += ["", "End to end, ms: librdkafka, 100 B, acks=all, open loop, from the time at which a record was due"]
        lines += latency_table(results)
        for cell, side in results.senders_behind():
            lines.append(f"  the sender did not keep {cell.rate}/s: {', '.join(cell.labels())}, {side}")
    if "start" in sections:
        lines += ["", "Start on an empty directory"]
        lines += start_table(results)
    if "slow-sync" in sections:
        more = f"where each sync takes {cells.SLOW_SYNC_MS} ms more"
        lines += ["", f"acks=all, ms, {more}; a record under way for each partition"]
        lines += slow_sync_table(results)
    if "log" in sections:
        lines += ["", "The log alone: no broker, one thread; a call is a batch, a fetch, a look-up, a record, an open"]
        lines += log_table(results)
    return lines


@dataclasses.dataclass(frozen=True)
class Verdict:
    text: str
    met: bool
    # What fails of it, a line each.
    details: tuple = ()

    def line(self):
        return f"{self.text}: {'met' if self.met else 'NOT met'}"

    def lines(self):
        return [self.line(), *(f"  not met: {detail}" for detail in self.details)]


READY_MS_MAX = 150
RESIDENT_MIB_MAX = 50
# To a floor run beside it.
FLOOR_RATIO_MAX = 1.3
CONSUME_RATIO_MAX = 0.8
PRODUCE_RATIO_MAX = 0.2
# In large batches of large records there is little for Kafka to do, too.
PRODUCE_RATIO_MAX_OF_LARGE = 0.35


@dataclasses.dataclass(frozen=True)
class Measure:
    """Our CPU for one cell beside Kafka's or the floor's."""

    whose: str
    ratio: float
    bound: float

    @property
    def share(self):
        """Of what is allowed; met up to 1."""
        return self.ratio / self.bound

    @property
    def met(self):
        return self.ratio <= self.bound

    def text(self):
        whose = {"Kafka": "Kafka's", "floor": "the floor's"}[self.whose]
        return f"{self.ratio:.2f}× {whose} (bound {self.bound}×)"


def kafka_bound(cell):
    if isinstance(cell, cells.Consume):
        return CONSUME_RATIO_MAX
    if cell.record_bytes == cells.KIB and cell.batch_kib == 128:
        return PRODUCE_RATIO_MAX_OF_LARGE
    return PRODUCE_RATIO_MAX


def measures(results, cell, side):
    """A cell meets its bound by Kafka's CPU or by the floor's, where there is a floor. None if a figure is missing."""
    others = [("Kafka", counterpart(cell, side), kafka_bound(cell))]
    floor = floor_of(cell, side)
    if floor in cell.measured_on:
        others.append(("floor", floor, FLOOR_RATIO_MAX))
    ratios = [results.ratio(cell, side, "cpu_seconds_per_million", other) for _, other, _ in others]
    if None in ratios:
        return None
    return [Measure(whose, ratio, bound) for (whose, _, bound), ratio in zip(others, ratios)]


def met_by(results, cell, side):
    found = measures(results, cell, side)
    if found is None:
        return MISSING
    return "+".join(measure.whose for measure in found if measure.met) or "NOT"


def verdicts(results, sections):
    """One for each bound and mode; a bound of which a cell is missing is not met."""
    found = []
    for side in OURS:
        if "produce" in sections:
            found.append(worst_cell(results, "produce CPU", cells.PRODUCE, side))
        if "consume" in sections:
            found.append(worst_cell(results, "fetch CPU", cells.CONSUME, side))
        if "start" in sections:
            found.append(below(results, "ready after", "ready_http_ms", "ms", side, READY_MS_MAX))
            found.append(below(results, "resident memory", "resident_mib", "MiB", side, RESIDENT_MIB_MAX))
    return found


def worst_cell(results, what, rows, side):
    """The cell that uses most of what the kinder of its two measures allows, and each that is above both."""
    found = {row: measures(results, row, side) for row in rows}
    missing = [row for row in rows if found[row] is None]
    if missing:
        return Verdict(f"{what}, {side.key}: {len(missing)} of {len(rows)} cells missing", False)
    kinder = {row: min(found[row], key=lambda measure: measure.share) for row in rows}
    worst = max(rows, key=lambda row: kinder[row].share)
    unmet = [row for row in rows if not kinder[row].met]
    details = [f"{name(row)}: {', '.join(measure.text() for measure in found[row])}" for row in unmet]
    text = f"{what}, {side.key}: worst cell {kinder[worst].text()}: {name(worst)}"
    if unmet:
        text += f"; {len(unmet)} of {len(rows)} cells"
    return Verdict(text, not unmet, tuple(details))


def name(cell):
    return ", ".join(cell.labels())


def below(results, what, metric, unit, side, bound):
    value = results.median(cells.Start(), side, metric)
    if value is None:
        return Verdict(f"{what}, {side.key}: not measured (bound {bound} {unit})", False)
    return Verdict(f"{what}, {side.key}: {number(value)} {unit} (bound {bound} {unit})", value < bound)
