import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Topics with names of their own and clients that keep Kafka's defaults unless a case says otherwise. */
final class Fixture {
    private static final int READ_SECONDS_MAX = 60;
    private static final AtomicInteger COUNTER = new AtomicInteger();
    private static final String RUN = Long.toString(System.currentTimeMillis(), 36);

    final String bootstrap;
    private Admin admin;

    Fixture(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    synchronized Admin admin() {
        if (admin == null) {
            admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
        }
        return admin;
    }

    static String name(String stem) {
        return stem + "-" + RUN + "-" + COUNTER.incrementAndGet();
    }

    /**
     * A new topic; configs as key, value, key, value. It returns when every partition answers for itself: a producer's
     * first batches, if some of them came before and some after that, could be taken in the wrong order.
     */
    String topic(int partitions, String... configs) throws Exception {
        Map<String, String> map = new HashMap<>();
        for (int at = 0; at < configs.length; at += 2) {
            map.put(configs[at], configs[at + 1]);
        }
        String name = name("t");
        admin().createTopics(List.of(new NewTopic(name, partitions, (short) 1).configs(map))).all().get();
        Map<TopicPartition, OffsetSpec> ends = new HashMap<>();
        for (int partition = 0; partition < partitions; partition++) {
            ends.put(new TopicPartition(name, partition), OffsetSpec.latest());
        }
        Check.eventually(name + " answers", () -> {
            try {
                return admin().listOffsets(ends).all().get().size() == partitions;
            } catch (ExecutionException error) {
                if (error.getCause() instanceof RetriableException) {
                    return false;
                }
                throw error;
            }
        });
        return name;
    }

    private Map<String, Object> settings(String... overrides) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", bootstrap);
        for (int at = 0; at < overrides.length; at += 2) {
            settings.put(overrides[at], overrides[at + 1]);
        }
        return settings;
    }

    KafkaProducer<byte[], byte[]> producer(String... overrides) {
        return new KafkaProducer<>(settings(overrides), new ByteArraySerializer(), new ByteArraySerializer());
    }

    KafkaConsumer<byte[], byte[]> consumer(String... overrides) {
        Map<String, Object> settings = settings("auto.offset.reset", "earliest", "enable.auto.commit", "false");
        settings.putAll(settings(overrides));
        return new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    /** A consumer in a group, with a heartbeat so quick that it soon hears of a rebalance. */
    KafkaConsumer<byte[], byte[]> member(String group, String... overrides) {
        List<String> all = new ArrayList<>(List.of("group.id", group, "heartbeat.interval.ms", "300"));
        all.addAll(List.of(overrides));
        return consumer(all.toArray(String[]::new));
    }

    /** Closes a consumer whose last fetch is still waiting at the broker, and does not wait with it. */
    static void abandon(KafkaConsumer<?, ?> consumer) {
        consumer.close(CloseOptions.timeout(Duration.ZERO));
    }

    static byte[] bytes(String text) {
        return text == null ? null : text.getBytes(java.nio.charset.StandardCharsets.UTF_8);
    }

    static String text(byte[] bytes) {
        return bytes == null ? null : new String(bytes, java.nio.charset.StandardCharsets.UTF_8);
    }

    static ProducerRecord<byte[], byte[]> record(String topic, Integer partition, String key, String value) {
        return new ProducerRecord<>(topic, partition, bytes(key), bytes(value));
    }

    /** Sends values to one partition, one batch each, and returns what the broker answered. */
    List<RecordMetadata> send(String topic, int partition, String... values) throws Exception {
        List<RecordMetadata> sent = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer = producer("linger.ms", "0")) {
            for (String value : values) {
                sent.add(producer.send(record(topic, partition, null, value)).get());
            }
        }
        return sent;
    }

    List<TopicPartition> partitions(KafkaConsumer<?, ?> consumer, String topic) {
        List<TopicPartition> partitions = new ArrayList<>();
        for (PartitionInfo info : consumer.partitionsFor(topic)) {
            partitions.add(new TopicPartition(topic, info.partition()));
        }
        return partitions;
    }

    /** Everything in the topic, up to the ends at the time of the call. */
    List<ConsumerRecord<byte[], byte[]>> readAll(String topic, String... overrides) throws Exception {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(overrides)) {
            List<TopicPartition> partitions = partitions(consumer, topic);
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
            poll(consumer, records, () -> {
                for (TopicPartition partition : partitions) {
                    if (consumer.position(partition) < ends.get(partition)) {
                        return false;
                    }
                }
                return true;
            });
            return records;
        }
    }

    /** Polls until enough has come. */
    static void poll(KafkaConsumer<byte[], byte[]> consumer, List<ConsumerRecord<byte[], byte[]>> into,
            BooleanSupplier enough) {
        long deadline = System.nanoTime() + READ_SECONDS_MAX * 1_000_000_000L;
        while (!enough.getAsBoolean()) {
            Check.that(System.nanoTime() < deadline,
                    "read " + into.size() + " records in " + READ_SECONDS_MAX + " s, then waited for more");
            consumer.poll(Duration.ofMillis(200)).forEach(into::add);
        }
    }

    static List<String> values(Iterable<ConsumerRecord<byte[], byte[]>> records) {
        List<String> values = new ArrayList<>();
        for (ConsumerRecord<byte[], byte[]> record : records) {
            values.add(text(record.value()));
        }
        return values;
    }
}
