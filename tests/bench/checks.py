"""Holds the arithmetic of the benchmark's report and the readers of its clients' output: `python3 checks.py`.

Standard library only: no broker, no client.
"""

import unittest

import cells
import clients
import report
import sides

FSYNC, REPLICATED, KAFKA_FSYNC, KAFKA = sides.SIDES
DELIVERED = (
    "% 1000 messages produced (100000 bytes), {} delivered (offset 999, {} failed) in 12ms: 83333 msgs/s and 8.33 MB/s,"
    " 0 produce failures\n"
)
JAVA_PRODUCED = (
    "500 records sent, 900.0 records/sec (0.09 MB/sec), 1.0 ms avg latency, 9.0 ms max latency.\n"
    "1000 records sent, 1234.5 records/sec (0.12 MB/sec), 1.0 ms avg latency, 9.0 ms max latency, 1 ms 50th, "
    "2 ms 95th, 3 ms 99th, 4 ms 99.9th.\n"
)
JAVA_CONSUMED = "2026-01-01 00:00:00:0, 2026-01-01 00:00:01:0, 0.0954, 0.0954, 1000, 1000.0, 10, 990, 0.0963, 1010.1\n"
LATENCY = "rate=10 sent=10 size=100 acks=all linger=0 received=20 p50=1.500 p90=2.000 p99=3.250 p99.9=4.000 ms\n"


def throughput(cpu_seconds_per_million):
    load = clients.Load("", cpu_seconds_per_million, 0.0, 1.0, 0.0)
    return cells.throughput(load, 1e6, 1_000_000, 1024)


def produced(ours, kafkas):
    """Results in which each produce cell costs that much."""
    results = report.Results()
    for cell in cells.PRODUCE:
        for side in sides.SIDES:
            results.add(cell, side, throughput(ours if side.ours else kafkas))
    return results


class Readers(unittest.TestCase):
    def test_each_reader_finds_the_rate(self):
        self.assertEqual(83333, clients.librdkafka_produced(DELIVERED.format(1000, 0), 1000))
        self.assertEqual(1234.5, clients.java_produced(JAVA_PRODUCED, 1000))
        self.assertEqual(1010.1, clients.java_consumed(JAVA_CONSUMED, 1000))
        self.assertEqual((1.5, 3.25, 10), clients.latencies(LATENCY, 10, 2))

    def test_a_client_that_left_records_out_is_an_error(self):
        for output in (DELIVERED.format(999, 1), DELIVERED.format(999, 0), ""):
            with self.assertRaises(clients.ClientError):
                clients.librdkafka_produced(output, 1000)
        with self.assertRaises(clients.ClientError):
            clients.java_produced(JAVA_PRODUCED, 1001)
        with self.assertRaises(clients.ClientError):
            clients.java_consumed(JAVA_CONSUMED, 1001)
        with self.assertRaises(clients.ClientError):
            clients.latencies(LATENCY, 10, 3)


class Figures(unittest.TestCase):
    def test_cpu_is_told_per_million_records_and_per_gibibyte_of_values(self):
        sample = cells.throughput(clients.Load("", 3.0, 0.0, 1.0, 0.0), 2048, 2**20, 512)
        self.assertEqual(1.0, sample["mib_per_second"])
        self.assertEqual(6.0, sample["cpu_seconds_per_gib"])
        self.assertAlmostEqual(2.861, sample["cpu_seconds_per_million"], 3)

    def test_a_figure_is_the_median_of_the_rounds(self):
        results, cell = report.Results(), cells.PRODUCE[0]
        for seconds in (9.0, 1.0, 2.0):
            results.add(cell, FSYNC, throughput(seconds))
        self.assertEqual(2.0, results.median(cell, FSYNC, "cpu_seconds_per_million"))

    def test_a_cell_that_failed_in_one_round_shows_no_figure(self):
        results, cell = produced(1.0, 2.0), cells.PRODUCE[0]
        results.fail(cell, KAFKA, "ended")
        self.assertEqual("failed", results.text(cell, KAFKA, "mib_per_second"))
        self.assertIsNone(results.ratio(cell, FSYNC, "cpu_seconds_per_million"))

    def test_ours_is_set_against_the_kafka_that_promises_the_same(self):
        results = produced(1.0, 4.0)
        for cell in cells.PRODUCE:
            results.samples[cell, KAFKA_FSYNC.key] = [throughput(10.0)]
            durable = 0.1 if cell.acks == "all" else 0.25
            self.assertEqual(durable, results.ratio(cell, FSYNC, "cpu_seconds_per_million"), cell)
            self.assertEqual(0.25, results.ratio(cell, REPLICATED, "cpu_seconds_per_million"), cell)
            self.assertEqual(0.25, results.ratio(cell, FSYNC, "cpu_seconds_per_million", KAFKA), cell)
        self.assertEqual(KAFKA_FSYNC, report.counterpart(cells.LATENCY[0], FSYNC))
        self.assertEqual(KAFKA, report.counterpart(cells.CONSUME[0], FSYNC))

    def test_ours_is_set_against_the_floor_that_waits_for_the_disk_as_it_does(self):
        results = produced(1.0, 4.0)
        for cell in cells.PRODUCE:
            results.samples[cell, sides.FLOOR_FSYNC.key] = [throughput(0.5)]
            results.samples[cell, sides.FLOOR.key] = [throughput(0.8)]
        texts = {row: line for row, line in zip(cells.PRODUCE, report.throughput_table(results, cells.PRODUCE)[2:])}
        for cell, line in texts.items():
            durable, memory = ("2.00×" if cell.acks == "all" else "1.25×"), "1.25×"
            self.assertEqual([durable, memory], line.split()[-2:], cell)
        self.assertNotIn(sides.FLOOR, cells.Consume(cells.JAVA, 100).measured_on)
        self.assertIn(sides.FLOOR, cells.Consume(cells.LIBRDKAFKA, 100).measured_on)

    def test_a_sender_that_fell_behind_is_told(self):
        results, cell = report.Results(), cells.LATENCY[0]
        results.add(cell, KAFKA, {"sent_per_second": cell.rate * 0.9})
        self.assertEqual([(cell, KAFKA.key)], results.senders_behind())

    def test_every_round_measures_every_cell_once(self):
        first, second = (cells.of_round(cells.SECTIONS, turn, 3) for turn in (0, 1))
        self.assertNotEqual(first, second)
        self.assertEqual({*cells.PRODUCE, *cells.CONSUME, *cells.LATENCY}, set(first))
        self.assertEqual(sorted(map(repr, first)), sorted(map(repr, second)))


class Verdicts(unittest.TestCase):
    def test_the_worst_cell_decides(self):
        results = produced(1.0, 4.0)
        self.assertTrue(all(verdict.met for verdict in report.verdicts(results, ["produce"])))
        worst = cells.PRODUCE[3]
        results.samples[worst, FSYNC.key] = [throughput(2.2)]
        fsync, replicated = report.verdicts(results, ["produce"])
        self.assertFalse(fsync.met)
        self.assertEqual(
            "produce CPU, fsync: worst cell 0.55× (librdkafka, 100 B, acks=all, 16 KiB; bound 0.5×): NOT met",
            fsync.line(),
        )
        self.assertTrue(replicated.met)

    def test_a_bound_with_a_missing_cell_is_not_met(self):
        results = produced(1.0, 4.0)
        del results.samples[cells.PRODUCE[5], KAFKA.key]
        self.assertEqual([False, False], [verdict.met for verdict in report.verdicts(results, ["produce"])])
        self.assertFalse(any(verdict.met for verdict in report.verdicts(report.Results(), cells.SECTIONS)))

    def test_start_and_memory_have_to_stay_below_their_bounds(self):
        results = report.Results()
        results.add(cells.Start(), FSYNC, {"ready_http_ms": 149.0, "resident_mib": 50.0})
        results.add(cells.Start(), REPLICATED, {"ready_http_ms": 150.0, "resident_mib": 49.0})
        self.assertEqual([True, False, False, True], [verdict.met for verdict in report.verdicts(results, ["start"])])


class Tables(unittest.TestCase):
    def test_every_cell_is_shown_under_its_mode(self):
        lines = report.tables(produced(1.0, 4.0), cells.SECTIONS)
        text = "\n".join(lines)
        for cell in (*cells.PRODUCE, *cells.CONSUME, *cells.LATENCY):
            self.assertTrue(any(all(label in line for label in cell.labels()) for line in lines), cell)
        for side in sides.SIDES:
            self.assertEqual(4, text.count(side.title))
        self.assertEqual(3 * len(cells.PRODUCE), text.count("0.25×"))

    def test_columns_stand_below_each_other(self):
        lines = report.throughput_table(produced(1.0, 4.0), cells.PRODUCE)
        bars = [[index for index, letter in enumerate(line) if letter == "|"] for line in lines]
        self.assertEqual([bars[0]] * len(bars), bars)


if __name__ == "__main__":
    unittest.main()
