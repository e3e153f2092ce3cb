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


def produced(ours, kafkas, floors=0.8):
    """Results in which each produce cell costs that much."""
    results = report.Results()
    costs = {"millstream": ours, "kafka": kafkas, "floor": floors}
    for cell in cells.PRODUCE:
        for side in cell.measured_on:
            results.add(cell, side, throughput(costs[side.kind]))
    return results


def consumed(ours, kafkas, floors):
    results = report.Results()
    costs = {"millstream": ours, "kafka": kafkas, "floor": floors}
    for cell in cells.CONSUME:
        for side in cell.measured_on:
            results.add(cell, side, throughput(costs[side.kind]))
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


    def test_only_librdkafkas_producer_may_miscount_what_it_sent(self):
        produce = clients.librdkafka_produce("host:1", "t", 100, 1000, "all", None)
        consume = clients.librdkafka_consume("host:1", "t", 1000)
        codes = [clients.accepted_codes([str(word) for word in command]) for command in (produce, consume)]
        self.assertEqual([(0, 1), (0,)], codes)


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
            ratios = line.split(" | ")[-2]
            self.assertEqual([durable, memory], ratios.split(), cell)
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
    def verdicts(self, results, section):
        return report.verdicts(results, [section])

    def test_a_cell_meets_its_bound_by_either_measure(self):
        for ours, kafkas, floors, met_by in (
            (1.0, 5.0, 0.5, "Kafka"), (1.0, 4.9, 0.77, "floor"), (1.0, 9.0, 0.9, "Kafka+floor"), (1.0, 2.5, 0.76, "NOT")
        ):  # fmt: skip
            results = produced(ours, kafkas, floors)
            cell = cells.Produce(cells.LIBRDKAFKA, 100, "1", 128)
            self.assertEqual(met_by, report.met_by(results, cell, REPLICATED), (ours, kafkas, floors))
            self.assertEqual(met_by != "NOT", self.verdicts(results, "produce")[1].met, (ours, kafkas, floors))

    def test_large_batches_of_large_records_may_cost_more_of_kafkas(self):
        bounds = {(row.record_bytes, row.batch_kib): report.kafka_bound(row) for row in cells.PRODUCE}
        self.assertEqual({(100, 128): 0.2, (100, 16): 0.2, (cells.KIB, 128): 0.35, (cells.KIB, 16): 0.2}, bounds)

    def test_consuming_may_cost_four_fifths_of_kafkas_or_what_its_floor_allows(self):
        by_kafka, by_floor = consumed(0.8, 1.0, 0.1), consumed(0.9, 1.0, 0.7)
        self.assertTrue(all(verdict.met for verdict in self.verdicts(by_kafka, "consume")))
        # The Java consumer has no floor, so Kafka's is its only measure.
        self.assertEqual(
            [
                "fetch CPU, fsync: worst cell 0.90× Kafka's (bound 0.8×): Java, 100 B; 2 of 4 cells: NOT met",
                "  not met: Java, 100 B: 0.90× Kafka's (bound 0.8×)",
                "  not met: Java, 1 KiB: 0.90× Kafka's (bound 0.8×)",
            ],
            self.verdicts(by_floor, "consume")[0].lines(),
        )

    def test_the_worst_cell_is_told_by_the_kinder_of_its_measures(self):
        results = produced(1.0, 10.0)
        self.assertTrue(all(verdict.met for verdict in self.verdicts(results, "produce")))
        worst, met = cells.PRODUCE[3], cells.PRODUCE[5]
        results.samples[worst, FSYNC.key] = [throughput(2.2)]
        # Of its bound, this one uses more by Kafka's CPU than the worst does, but less by the floor's.
        results.samples[met, FSYNC.key] = [throughput(6.0)]
        results.samples[met, sides.FLOOR.key] = [throughput(5.0)]
        fsync, replicated = self.verdicts(results, "produce")
        self.assertEqual(
            [
                "produce CPU, fsync: worst cell 0.22× Kafka's (bound 0.2×): librdkafka, 100 B, acks=all, 16 KiB; "
                "1 of 16 cells: NOT met",
                "  not met: librdkafka, 100 B, acks=all, 16 KiB: 0.22× Kafka's (bound 0.2×), "
                "2.75× the floor's (bound 1.3×)",
            ],
            fsync.lines(),
        )
        self.assertTrue(replicated.met)

    def test_a_bound_with_a_missing_cell_is_not_met(self):
        for lacking in (KAFKA, sides.FLOOR):
            results = produced(1.0, 10.0)
            del results.samples[cells.PRODUCE[5], lacking.key]
            self.assertEqual([False, False], [verdict.met for verdict in self.verdicts(results, "produce")])
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
            self.assertEqual(4 + (side in cells.SlowSync.measured_on), text.count(side.title))
        self.assertEqual(3 * len(cells.PRODUCE), text.count("0.25×"))

    def test_a_log_bench_without_bytes_shows_only_its_calls(self):
        results = report.Results()
        lines = (
            {"name": "append-16k", "bytes": 2**30, "calls": 1024, "wall_seconds": 2.0, "cpu_seconds": 0.5},
            {"name": "open", "bytes": 0, "calls": 1000, "wall_seconds": 2.0, "cpu_seconds": 0.5},
        )
        for line in lines:
            results.add(cells.Log(line["name"]), sides.LOG, cells.of_log(line))
        rows = [line.split() for line in report.log_table(results)[2:]]
        self.assertEqual(["append-16k", "|", "512", "0.50", "512", "488"], rows[0])
        self.assertEqual(["open", "|", "–", "–", "500", "500"], rows[1])

    def test_slow_syncs_are_set_beside_kafkas_with_the_same(self):
        results, cell = report.Results(), cells.SlowSync()
        figures = {"p50_ms": 1.0, "threads": 20, "broker_cores": 0.5}
        for side, rate, p99, cpu in ((FSYNC, 9000.0, 30.0, 2.0), (KAFKA_FSYNC, 900.0, 600.0, 20.0)):
            sample = {**figures, "records_per_second": rate, "p99_ms": p99, "cpu_seconds_per_million": cpu}
            results.add(cell, side, sample)
        line = report.slow_sync_table(results)[-1]
        self.assertEqual(["10.00×", "0.05×", "0.10×"], line.split()[-3:])

    def test_columns_stand_below_each_other(self):
        lines = report.throughput_table(produced(1.0, 4.0), cells.PRODUCE)
        bars = [[index for index, letter in enumerate(line) if letter == "|"] for line in lines]
        self.assertEqual([bars[0]] * len(bars), bars)


if __name__ == "__main__":
    unittest.main()
