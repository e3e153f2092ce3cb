import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.NoOffsetForPartitionException;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;

/** A consumer without a group: positions, times, limits, exits. */
final class ConsumerCases {
    private final Fixture fixture;

    private ConsumerCases(Fixture fixture) {
        this.fixture = fixture;
    }

    static void addTo(Suite suite, Fixture fixture) {
        ConsumerCases cases = new ConsumerCases(fixture);
        suite.add("core", "positions_can_be_sought", cases::seek);
        suite.add("core", "offsets_are_found_by_time", cases::offsetsForTimes);
        suite.add("core", "offset_of_the_largest_timestamp_is_found", cases::maxTimestamp);
        suite.add("core", "offset_inside_a_batch_is_a_valid_start", cases::insideBatch);
        suite.add("core", "every_offset_is_a_valid_start", cases::everyOffset);
        suite.add("core", "position_outside_the_log_is_out_of_range", cases::outOfRange);
        suite.add("core", "reset_policies_choose_a_start", cases::resetPolicies);
        suite.add("core", "waiting_consumer_gets_a_record_when_it_is_written", cases::longPoll);
        suite.add("core", "paused_partition_gives_nothing", cases::pause);
        suite.add("core", "read_committed_reads_what_has_no_transaction", cases::readCommitted);
        suite.add("core", "poll_gives_at_most_max_poll_records", cases::maxPollRecords);
        suite.add("core", "e26_fetch_waits_for_its_minimum_or_its_time", cases::fetchMinimum);
        suite.add("core", "e26_fetch_stays_within_its_partition_limit", cases::partitionLimit);
        suite.add("core", "e26_batch_above_the_limit_is_read_whole", cases::oversizedBatch);
        suite.add("core", "e30_only_assigned_partitions_are_read", cases::assigned);
        suite.add("core", "e30_assign_after_subscribe_is_an_error", cases::assignAfterSubscribe);
        suite.add("core", "e30_wakeup_ends_a_poll", cases::wakeup);
        suite.add("groups", "e30_standalone_consumer_leaves_no_group", cases::noGroup);
    }

    private List<ConsumerRecord<byte[], byte[]>> next(KafkaConsumer<byte[], byte[]> consumer, int count) {
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        Fixture.poll(consumer, records, () -> records.size() >= count);
        return records;
    }

    private void seek() throws Exception {
        String topic = fixture.topic(1);
        fixture.send(topic, 0, "a", "b", "c", "d");
        TopicPartition partition = new TopicPartition(topic, 0);
        try (KafkaConsumer<byte[], byte[]> consumer = fixture.consumer()) {
            consumer.assign(List.of(partition));
            consumer.seek(partition, 2);
            Check.equal(List.of("c", "d"), Fixture.values(next(consumer, 2)), "from 2");
            consumer.seekToBeginning(List.of(partition));
            Check.equal(0L, consumer.position(partition), "beginning");
            Check.equal(4, next(consumer, 4).size(), "from the beginning");
            consumer.seekToEnd(List.of(partition));
            Check.equal(4L, consumer.position(partition), "end");
            Check.equal(Map.of(partition, 0L), consumer.beginningOffsets(List.of(partition)), "beginning offsets");
            Check.equal(Map.of(partition, 4L), consumer.endOffsets(List.of(partition)), "end offsets");
        }
    }

    private void sendAt(String topic, long... timestamps) throws Exception {
        try (KafkaProducer<byte[], byte[]> producer = fixture.producer("linger.ms", "0")) {
            for (long timestamp : timestamps) {
                producer.send(new ProducerRecord<>(topic, 0, timestamp, null, Fixture.bytes("at " + timestamp))).get();
            }
        }
    }

    private void offsetsForTimes() throws Exception {
        String topic = fixture.topic(1);
        long base = System.currentTimeMillis() - 100_000;
        sendAt(topic, base, base + 1000, base + 500, base + 3000);
        TopicPartition partition = new TopicPartition(topic, 0);
        long[][] expectations = {{base - 1, 0}, {base, 0}, {base + 1, 1}, {base + 1000, 1}, {base + 1001, 3},
            {base + 3000, 3}};
        try (KafkaConsumer<byte[], byte[]> consumer = fixture.consumer()) {
            for (long[] expectation : expectations) {
                OffsetAndTimestamp found =
                        consumer.offsetsForTimes(Map.of(partition, expectation[0])).get(partition);
                Check.equal(expectation[1], found.offset(), "first at or after base+" + (expectation[0] - base));
            }
            Check.equal(null, consumer.offsetsForTimes(Map.of(partition, base + 3001)).get(partition), "after all");
        }
    }

    private void maxTimestamp() throws Exception {
        String topic = fixture.topic(1);
        TopicPartition partition = new TopicPartition(topic, 0);
        Check.equal(-1L, listed(partition, OffsetSpec.maxTimestamp()), "in an empty log");
        long base = System.currentTimeMillis() - 100_000;
        sendAt(topic, base, base + 5000, base + 200);
        Check.equal(1L, listed(partition, OffsetSpec.maxTimestamp()), "largest timestamp");
        Check.equal(0L, listed(partition, OffsetSpec.earliest()), "earliest");
        Check.equal(3L, listed(partition, OffsetSpec.latest()), "latest");
        Check.equal(1L, listed(partition, OffsetSpec.forTimestamp(base + 300)), "by timestamp");
    }

    private long listed(TopicPartition partition, OffsetSpec spec) throws Exception {
        return fixture.admin().listOffsets(Map.of(partition, spec)).partitionResult(partition).get().offset();
    }

    private void insideBatch() throws Exception {
        for (String codec : List.of("none", "zstd")) {
            String topic = fixture.topic(1);
            try (KafkaProducer<byte[], byte[]> producer =
                    fixture.producer("linger.ms", "500", "compression.type", codec)) {
                for (int number = 0; number < 10; number++) {
                    producer.send(Fixture.record(topic, 0, null, String.valueOf(number)));
                }
            }
            try (KafkaConsumer<byte[], byte[]> consumer = fixture.consumer()) {
                TopicPartition partition = new TopicPartition(topic, 0);
                consumer.assign(List.of(partition));
                consumer.seek(partition, 7);
                Check.equal(List.of("7", "8", "9"), Fixture.values(next(consumer, 3)), "from 7 on");
            }
        }
    }

    /** Many batches lie between two entries of the index, and few of them begin where one is asked for. */
    private void everyOffset() throws Exception {
        String topic = fixture.topic(1);
        TopicPartition partition = new TopicPartition(topic, 0);
        try (KafkaProducer<byte[], byte[]> producer = fixture.producer("batch.size", "700")) {
            for (int number = 0; number < 600; number++) {
                producer.send(Fixture.record(topic, 0, null, number + " " + "v".repeat(150)));
            }
        }
        try (KafkaConsumer<byte[], byte[]> consumer = fixture.consumer("max.poll.records", "1")) {
            consumer.assign(List.of(partition));
            for (long from = 0; from < 600; from++) {
                consumer.seek(partition, from);
                ConsumerRecord<byte[], byte[]> first = next(consumer, 1).get(0);
                Check.equal(from, first.offset(), "offset");
                Check.that(Fixture.text(first.value()).startsWith(from + " "), "value at " + from);
            }
        }
    }

    private void outOfRange() throws Throwable {
        String topic = fixture.topic(1);
        fixture.send(topic, 0, "a");
        TopicPartition partition = new TopicPartition(topic, 0);
        try (KafkaConsumer<byte[], byte[]> consumer = fixture.consumer("auto.offset.reset", "none")) {
            consumer.assign(List.of(partition));
            consumer.seek(partition, 5);
            OffsetOutOfRangeException error = Check.fails(OffsetOutOfRangeException.class, () -> next(consumer, 1));
            Check.equal(Map.of(partition, 5L), error.offsetOutOfRangePartitions(), "partitions out of range");
        }
    }

    private void resetPolicies() throws Throwable {
        String topic = fixture.topic(1);
        fixture.send(topic, 0, "a", "b");
        TopicPartition partition = new TopicPartition(topic, 0);
        try (KafkaConsumer<byte[], byte[]> consumer = fixture.consumer("auto.offset.reset", "earliest")) {
            consumer.assign(List.of(partition));
            Check.equal(0L, consumer.position(partition), "earliest");
        }
        try (KafkaConsumer<byte[], byte[]> consumer = fixture.consumer("auto.offset.reset", "latest")) {
            consumer.assign(List.of(partition));
            Check.equal(2L, consumer.position(partition), "latest");
        }
        try (KafkaConsumer<byte[], byte[]> consumer = fixture.consumer("auto.offset.reset", "by_duration:PT1H")) {
            consumer.assign(List.of(partition));
            Check.equal(0L, consumer.position(partition), "an hour ago");
        }
        try (KafkaConsumer<byte[], byte[]> consumer = fixture.consumer("auto.offset.reset", "none")) {
            consumer.assign(List.of(partition));
            Check.fails(NoOffsetForPartitionException.class, () -> consumer.position(partition));
        }
    }

    /** The wait is much longer than a case may take: a record that comes at all has ended it. */
    private void longPoll() throws Exception {
        String topic = fixture.topic(1);
        TopicPartition partition = new TopicPartition(topic, 0);
        KafkaConsumer<byte[], byte[]> consumer = fixture.consumer("fetch.max.wait.ms", "600000",
                "request.timeout.ms", "900000", "default.api.timeout.ms", "900000");
        try {
            consumer.assign(List.of(partition));
            Check.equal(0, consumer.poll(Duration.ofMillis(300)).count(), "records in an empty topic");
            fixture.send(topic, 0, "here");
            Check.equal(List.of("here"), Fixture.values(next(consumer, 1)), "values");
        } finally {
            Fixture.abandon(consumer);
        }
    }

    private void pause() throws Exception {
        String topic = fixture.topic(2);
        TopicPartition zero = new TopicPartition(topic, 0);
        TopicPartition one = new TopicPartition(topic, 1);
        fixture.send(topic, 0, "zero");
        fixture.send(topic, 1, "one");
        try (KafkaConsumer<byte[], byte[]> consumer = fixture.consumer()) {
            consumer.assign(List.of(zero, one));
            consumer.pause(List.of(zero));
            Check.equal(List.of("one"), Fixture.values(next(consumer, 1)), "while paused");
            consumer.resume(List.of(zero));
            Check.equal(List.of("zero"), Fixture.values(next(consumer, 1)), "after resuming");
        }
    }

    private void readCommitted() throws Exception {
        String topic = fixture.topic(1);
        fixture.send(topic, 0, "a", "b");
        Check.equal(List.of("a", "b"),
                Fixture.values(fixture.readAll(topic, "isolation.level", "read_committed")), "values");
    }

    private void maxPollRecords() throws Exception {
        String topic = fixture.topic(1);
        fixture.send(topic, 0, "1", "2", "3", "4", "5", "6", "7");
        try (KafkaConsumer<byte[], byte[]> consumer = fixture.consumer("max.poll.records", "3")) {
            consumer.assign(List.of(new TopicPartition(topic, 0)));
            int read = 0;
            while (read < 7) {
                int count = consumer.poll(Duration.ofSeconds(30)).count();
                Check.that(count > 0 && count <= 3, "1 to 3 records, not " + count);
                read += count;
            }
        }
    }

    /** The wait is much longer than a case may take, so records that come at all come because the minimum was met. */
    private void fetchMinimum() throws Exception {
        String topic = fixture.topic(1);
        TopicPartition partition = new TopicPartition(topic, 0);
        fixture.send(topic, 0, "x".repeat(1000));
        try (KafkaConsumer<byte[], byte[]> consumer =
                fixture.consumer("fetch.min.bytes", "1000000", "fetch.max.wait.ms", "500")) {
            consumer.assign(List.of(partition));
            Check.equal(1, next(consumer, 1).size(), "records although the minimum is not met");
        }
        KafkaConsumer<byte[], byte[]> patient = fixture.consumer("fetch.min.bytes", "20000",
                "fetch.max.wait.ms", "600000", "request.timeout.ms", "900000", "default.api.timeout.ms", "900000");
        try {
            patient.assign(List.of(partition));
            Check.equal(0, patient.poll(Duration.ofMillis(700)).count(), "records below the minimum");
            fixture.send(topic, 0, "y".repeat(10_000), "y".repeat(10_000));
            Check.equal(3, next(patient, 3).size(), "records when the minimum is met");
        } finally {
            Fixture.abandon(patient);
        }
    }

    private void partitionLimit() throws Exception {
        String topic = fixture.topic(1);
        String[] values = new String[60];
        java.util.Arrays.fill(values, "v".repeat(930));
        fixture.send(topic, 0, values);
        try (KafkaConsumer<byte[], byte[]> consumer = fixture.consumer("max.partition.fetch.bytes", "4096")) {
            consumer.assign(List.of(new TopicPartition(topic, 0)));
            Check.equal(60, next(consumer, 60).size(), "records");
            double largest = metric(consumer, "fetch-size-max");
            Check.that(largest > 1000 && largest <= 4096, "largest fetch at most 4096 bytes, not " + largest);
        }
    }

    private static double metric(KafkaConsumer<?, ?> consumer, String name) {
        for (Metric metric : consumer.metrics().values()) {
            if (metric.metricName().name().equals(name) && metric.metricName().tags().size() == 1) {
                return (Double) metric.metricValue();
            }
        }
        throw new AssertionError("there is no metric " + name);
    }

    private void oversizedBatch() throws Exception {
        String topic = fixture.topic(1);
        fixture.send(topic, 0, "z".repeat(100_000), "small");
        Check.equal(2, fixture.readAll(topic, "max.partition.fetch.bytes", "1000", "fetch.max.bytes", "1000").size(),
                "records");
    }

    private void assigned() throws Exception {
        String topic = fixture.topic(3);
        for (int partition = 0; partition < 3; partition++) {
            fixture.send(topic, partition, "a" + partition, "b" + partition);
        }
        try (KafkaConsumer<byte[], byte[]> consumer = fixture.consumer()) {
            consumer.assign(List.of(new TopicPartition(topic, 0), new TopicPartition(topic, 2)));
            Check.equal(Set.of("a0", "b0", "a2", "b2"), new TreeSet<>(Fixture.values(next(consumer, 4))), "values");
        }
    }

    private void assignAfterSubscribe() throws Throwable {
        String topic = fixture.topic(1);
        try (KafkaConsumer<byte[], byte[]> consumer = fixture.member(Fixture.name("g"))) {
            consumer.subscribe(List.of(topic));
            Check.fails(IllegalStateException.class, () -> consumer.assign(List.of(new TopicPartition(topic, 0))));
        }
    }

    private void wakeup() throws Exception {
        String topic = fixture.topic(1);
        KafkaConsumer<byte[], byte[]> consumer = fixture.consumer();
        consumer.assign(List.of(new TopicPartition(topic, 0)));
        AtomicReference<Throwable> thrown = new AtomicReference<>();
        CountDownLatch polling = new CountDownLatch(1);
        Thread thread = new Thread(() -> {
            polling.countDown();
            try {
                consumer.poll(Duration.ofMinutes(10));
            } catch (Throwable error) {
                thrown.set(error);
            } finally {
                consumer.close();
            }
        });
        thread.setDaemon(true);
        thread.start();
        polling.await();
        consumer.wakeup();
        thread.join(60_000);
        Check.that(thrown.get() instanceof WakeupException, "poll ended with " + thrown.get());
    }

    private void noGroup() throws Exception {
        String topic = fixture.topic(1);
        fixture.send(topic, 0, "a");
        Set<String> before = groups();
        Check.equal(1, fixture.readAll(topic).size(), "records");
        Check.equal(before, groups(), "groups");
    }

    private Set<String> groups() throws Exception {
        Set<String> ids = new TreeSet<>();
        for (GroupListing group : fixture.admin().listGroups().all().get()) {
            ids.add(group.groupId());
        }
        return ids;
    }
}
