import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.errors.InvalidTimestampException;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.utils.Utils;

/** What a producer sends arrives as it was sent, or fails with the right error. */
final class ProducerCases {
    private final Fixture fixture;

    private ProducerCases(Fixture fixture) {
        this.fixture = fixture;
    }

    static void addTo(Suite suite, Fixture fixture) {
        ProducerCases cases = new ProducerCases(fixture);
        for (String acks : List.of("0", "1", "all")) {
            suite.add("core", "records_arrive_with_acks_" + acks, () -> cases.acks(acks));
        }
        for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            suite.add("core", "records_arrive_compressed_by_" + codec, () -> cases.codec(codec));
            suite.add("core", "topic_stores_what_it_gets_as_" + codec, () -> cases.topicCodec(codec));
        }
        suite.add("core", "idempotent_producer_gets_consecutive_offsets", cases::idempotent);
        suite.add("core", "headers_arrive_in_order", cases::headers);
        suite.add("core", "null_and_empty_keys_and_values_stay_apart", cases::nulls);
        suite.add("core", "record_of_nearly_a_mebibyte_arrives", cases::largeRecord);
        suite.add("core", "e19_oversized_record_is_refused_by_client_then_broker", cases::oversized);
        suite.add("core", "batch_above_the_topics_limit_is_split", cases::split);
        suite.add("core", "create_time_is_kept", cases::createTime);
        suite.add("core", "append_time_replaces_the_clients", cases::appendTime);
        suite.add("core", "timestamp_far_in_the_future_is_refused", cases::futureTimestamp);
        suite.add("core", "e28_key_decides_the_partition_by_murmur2", cases::murmur2);
        suite.add("core", "e28_explicit_partition_wins_over_the_key", cases::explicitPartition);
        suite.add("core", "e28_records_without_key_spread", cases::spread);
        suite.add("core", "partition_that_does_not_exist_is_refused", cases::unknownPartition);
        suite.add("core", "many_records_keep_their_order", cases::order);
        suite.add("core", "several_producers_share_a_partition", cases::severalProducers);
    }

    private void acks(String acks) throws Exception {
        String topic = fixture.topic(1);
        try (KafkaProducer<byte[], byte[]> producer =
                fixture.producer("acks", acks, "enable.idempotence", String.valueOf(acks.equals("all")))) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int number = 0; number < 100; number++) {
                sent.add(producer.send(Fixture.record(topic, null, null, "v" + number)));
            }
            for (int number = 0; number < 100; number++) {
                RecordMetadata metadata = sent.get(number).get();
                Check.equal(acks.equals("0") ? -1L : (long) number, metadata.offset(), "offset");
            }
        }
        Check.eventually("100 records are there", () -> fixture.readAll(topic).size() == 100);
        List<String> values = Fixture.values(fixture.readAll(topic));
        Check.equal("v0", values.get(0), "the first");
        Check.equal("v99", values.get(99), "the last");
    }

    private void codec(String codec) throws Exception {
        String topic = fixture.topic(1);
        List<String> values = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer =
                fixture.producer("compression.type", codec, "linger.ms", "100", "batch.size", "100000")) {
            for (int number = 0; number < 1000; number++) {
                String value = "value " + number + " " + "abc".repeat(number % 50);
                values.add(value);
                producer.send(Fixture.record(topic, null, "k" + number, value));
            }
        }
        Check.equal(values, Fixture.values(fixture.readAll(topic)), "values");
    }

    private void topicCodec(String codec) throws Exception {
        String topic = fixture.topic(1, "compression.type", codec.equals("none") ? "uncompressed" : codec);
        List<String> values = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer = fixture.producer("compression.type", "gzip")) {
            for (int number = 0; number < 200; number++) {
                values.add("value " + number);
                producer.send(Fixture.record(topic, null, null, "value " + number));
            }
        }
        Check.equal(values, Fixture.values(fixture.readAll(topic)), "values");
    }

    private void idempotent() throws Exception {
        String topic = fixture.topic(1);
        try (KafkaProducer<byte[], byte[]> producer = fixture.producer("linger.ms", "0", "batch.size", "500")) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int number = 0; number < 2000; number++) {
                sent.add(producer.send(Fixture.record(topic, null, null, "v" + number)));
            }
            for (int number = 0; number < 2000; number++) {
                Check.equal((long) number, sent.get(number).get().offset(), "offset");
            }
        }
    }

    private void headers() throws Exception {
        String topic = fixture.topic(1);
        List<Header> headers = List.of(new RecordHeader("a", Fixture.bytes("1")), new RecordHeader("b", null),
                new RecordHeader("a", Fixture.bytes("")), new RecordHeader("", Fixture.bytes("empty name")));
        try (KafkaProducer<byte[], byte[]> producer = fixture.producer()) {
            producer.send(new ProducerRecord<>(topic, 0, (byte[]) null, Fixture.bytes("v"), headers)).get();
        }
        List<Header> read = Arrays.asList(fixture.readAll(topic).get(0).headers().toArray());
        Check.equal(headers, read, "headers");
    }

    private void nulls() throws Exception {
        String topic = fixture.topic(1);
        try (KafkaProducer<byte[], byte[]> producer = fixture.producer()) {
            producer.send(Fixture.record(topic, 0, null, "no key"));
            producer.send(Fixture.record(topic, 0, "", "empty key"));
            producer.send(Fixture.record(topic, 0, "no value", null));
            producer.send(Fixture.record(topic, 0, "empty value", ""));
        }
        List<String> read = new ArrayList<>();
        for (ConsumerRecord<byte[], byte[]> record : fixture.readAll(topic)) {
            read.add(Fixture.text(record.key()) + "=" + Fixture.text(record.value()));
        }
        Check.equal(List.of("null=no key", "=empty key", "no value=null", "empty value="), read, "records");
    }

    private void largeRecord() throws Exception {
        String topic = fixture.topic(1);
        byte[] value = new byte[1_000_000];
        new Random(1).nextBytes(value);
        try (KafkaProducer<byte[], byte[]> producer = fixture.producer()) {
            producer.send(new ProducerRecord<>(topic, value)).get();
        }
        Check.that(Arrays.equals(value, fixture.readAll(topic).get(0).value()), "the value is the same");
    }

    private void oversized() throws Throwable {
        String topic = fixture.topic(1);
        byte[] value = new byte[1_200_000];
        try (KafkaProducer<byte[], byte[]> producer = fixture.producer()) {
            RecordTooLargeException error = Check.fails(RecordTooLargeException.class,
                    () -> producer.send(new ProducerRecord<>(topic, value)).get());
            Check.contains(error.getMessage(), "max.request.size");
        }
        try (KafkaProducer<byte[], byte[]> producer = fixture.producer("max.request.size", "10000000")) {
            RecordTooLargeException error = Check.fails(RecordTooLargeException.class,
                    () -> producer.send(new ProducerRecord<>(topic, value)).get());
            Check.contains(error.getMessage(), "larger than the max message size the server will accept");
        }
        Check.equal(0, fixture.readAll(topic).size(), "records written");
        fixture.send(topic, 0, "small");
    }

    private void split() throws Exception {
        String topic = fixture.topic(1, "max.message.bytes", "5000");
        List<String> values = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer =
                fixture.producer("linger.ms", "200", "batch.size", "100000", "compression.type", "gzip")) {
            Random random = new Random(7);
            for (int number = 0; number < 60; number++) {
                byte[] noise = new byte[600];
                random.nextBytes(noise);
                String value = java.util.Base64.getEncoder().encodeToString(noise);
                values.add(value);
                producer.send(Fixture.record(topic, 0, null, value));
            }
        }
        Check.equal(values, Fixture.values(fixture.readAll(topic)), "values");
    }

    private void createTime() throws Exception {
        String topic = fixture.topic(1);
        long then = System.currentTimeMillis() - 3_600_000;
        try (KafkaProducer<byte[], byte[]> producer = fixture.producer()) {
            RecordMetadata metadata =
                    producer.send(new ProducerRecord<>(topic, 0, then, null, Fixture.bytes("v"))).get();
            Check.equal(then, metadata.timestamp(), "answered timestamp");
        }
        ConsumerRecord<byte[], byte[]> record = fixture.readAll(topic).get(0);
        Check.equal(then, record.timestamp(), "timestamp");
        Check.equal(TimestampType.CREATE_TIME, record.timestampType(), "its type");
    }

    private void appendTime() throws Exception {
        String topic = fixture.topic(1, "message.timestamp.type", "LogAppendTime");
        long before = System.currentTimeMillis();
        RecordMetadata metadata;
        try (KafkaProducer<byte[], byte[]> producer = fixture.producer()) {
            metadata = producer.send(new ProducerRecord<>(topic, 0, 1000L, null, Fixture.bytes("v"))).get();
        }
        ConsumerRecord<byte[], byte[]> record = fixture.readAll(topic).get(0);
        Check.that(record.timestamp() >= before, "the broker's time, not " + record.timestamp());
        Check.equal(metadata.timestamp(), record.timestamp(), "answered and stored timestamp");
        Check.equal(TimestampType.LOG_APPEND_TIME, record.timestampType(), "its type");
    }

    private void futureTimestamp() throws Throwable {
        String topic = fixture.topic(1);
        long tooLate = System.currentTimeMillis() + 2 * 3_600_000;
        try (KafkaProducer<byte[], byte[]> producer = fixture.producer()) {
            Check.fails(InvalidTimestampException.class, () -> producer
                    .send(new ProducerRecord<>(topic, 0, tooLate, null, Fixture.bytes("v"))).get());
        }
        Check.equal(0, fixture.readAll(topic).size(), "records written");
    }

    private void murmur2() throws Exception {
        int partitions = 7;
        String topic = fixture.topic(partitions);
        try (KafkaProducer<byte[], byte[]> producer = fixture.producer()) {
            for (int number = 0; number < 200; number++) {
                byte[] key = Fixture.bytes("key-" + number);
                int expected = Utils.toPositive(Utils.murmur2(key)) % partitions;
                int chosen = producer.send(Fixture.record(topic, null, "key-" + number, "v")).get().partition();
                Check.equal(expected, chosen, "partition of key-" + number);
            }
        }
        for (ConsumerRecord<byte[], byte[]> record : fixture.readAll(topic)) {
            Check.equal(Utils.toPositive(Utils.murmur2(record.key())) % partitions, record.partition(), "read from");
        }
    }

    private void explicitPartition() throws Exception {
        String topic = fixture.topic(3);
        try (KafkaProducer<byte[], byte[]> producer = fixture.producer()) {
            for (int partition = 0; partition < 3; partition++) {
                Check.equal(partition, producer.send(Fixture.record(topic, partition, "same key", "v")).get()
                        .partition(), "partition");
            }
        }
    }

    private void spread() throws Exception {
        String topic = fixture.topic(4);
        Map<Integer, Integer> counts = new HashMap<>();
        try (KafkaProducer<byte[], byte[]> producer = fixture.producer("batch.size", "200")) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int number = 0; number < 4000; number++) {
                sent.add(producer.send(Fixture.record(topic, null, null, "value " + number)));
            }
            for (Future<RecordMetadata> one : sent) {
                counts.merge(one.get().partition(), 1, Integer::sum);
            }
        }
        Check.equal(4, counts.size(), "partitions that got records: " + counts);
    }

    private void unknownPartition() throws Throwable {
        String topic = fixture.topic(2);
        try (KafkaProducer<byte[], byte[]> producer = fixture.producer("max.block.ms", "1000")) {
            Check.fails(TimeoutException.class, () -> producer.send(Fixture.record(topic, 2, null, "v"))
                    .get(60, TimeUnit.SECONDS));
        }
    }

    private void order() throws Exception {
        int partitions = 6;
        String topic = fixture.topic(partitions);
        try (KafkaProducer<byte[], byte[]> producer = fixture.producer("compression.type", "lz4")) {
            for (int number = 0; number < 60_000; number++) {
                producer.send(Fixture.record(topic, number % partitions, null, String.valueOf(number)));
            }
        }
        int[] next = new int[partitions];
        for (ConsumerRecord<byte[], byte[]> record : fixture.readAll(topic)) {
            int expected = next[record.partition()]++ * partitions + record.partition();
            Check.equal(String.valueOf(expected), Fixture.text(record.value()), "next of " + record.partition());
        }
        for (int partition = 0; partition < partitions; partition++) {
            Check.equal(10_000, next[partition], "records in partition " + partition);
        }
    }

    private void severalProducers() throws Exception {
        String topic = fixture.topic(1);
        List<Thread> threads = new ArrayList<>();
        for (int thread = 0; thread < 4; thread++) {
            String name = "p" + thread;
            threads.add(started(() -> {
                try (KafkaProducer<byte[], byte[]> producer = fixture.producer("batch.size", "300")) {
                    for (int number = 0; number < 500; number++) {
                        producer.send(Fixture.record(topic, 0, name, String.valueOf(number)));
                    }
                }
            }));
        }
        for (Thread thread : threads) {
            thread.join();
        }
        Map<String, Integer> next = new HashMap<>();
        for (ConsumerRecord<byte[], byte[]> record : fixture.readAll(topic)) {
            int expected = next.merge(Fixture.text(record.key()), 1, Integer::sum) - 1;
            Check.equal(String.valueOf(expected), Fixture.text(record.value()), "order of one producer");
        }
        Check.equal(Map.of("p0", 500, "p1", 500, "p2", 500, "p3", 500), next, "records a producer");
    }

    private static Thread started(Runnable body) {
        Thread thread = new Thread(body);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }
}
