import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.AlterConfigsOptions;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.CreatePartitionsOptions;
import org.apache.kafka.clients.admin.DescribeConfigsOptions;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.InvalidConfigurationException;
import org.apache.kafka.common.errors.InvalidPartitionsException;
import org.apache.kafka.common.errors.InvalidRequestException;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.storage.internals.log.LogConfig;

/** Configs, partitions added later, deleted records, retention. */
final class ConfigCases {
    private static final int SEGMENT_BYTES = 1 << 20;
    private static final int RETENTION_BYTES = 2 << 20;

    private final Fixture fixture;

    private ConfigCases(Fixture fixture) {
        this.fixture = fixture;
    }

    static void addTo(Suite suite, Fixture fixture) {
        ConfigCases cases = new ConfigCases(fixture);
        suite.add("configs", "every_topic_key_is_described_with_its_default", cases::topicKeys);
        suite.add("configs", "every_broker_key_is_described", cases::brokerKeys);
        suite.add("configs", "synonyms_tell_where_a_value_comes_from", cases::synonyms);
        suite.add("configs", "topic_config_is_set_and_deleted", cases::setAndDelete);
        suite.add("configs", "list_config_is_appended_and_subtracted", cases::appendAndSubtract);
        suite.add("configs", "validating_only_changes_no_config", cases::validateOnly);
        suite.add("configs", "bad_values_and_unknown_keys_are_refused", cases::badValues);
        suite.add("configs", "configs_of_an_unknown_topic_are_an_error", cases::unknownTopic);
        suite.add("configs", "broker_config_is_set_for_one_and_for_all", cases::brokerConfig);
        suite.add("configs", "static_broker_key_cannot_be_changed", cases::staticKey);
        suite.add("configs", "changed_limit_takes_effect", cases::limitTakesEffect);
        suite.add("configs", "cluster_wide_default_reaches_topics", cases::clusterDefault);
        suite.add("configs", "partitions_are_added_but_not_taken_away", cases::createPartitions);
        suite.add("configs", "e32_group_gets_added_partitions", cases::partitionsForGroup);
        suite.add("configs", "deleted_records_are_not_read", cases::deleteRecords);
        suite.add("configs", "records_are_deleted_inside_a_batch", cases::deleteInsideBatch);
        suite.add("configs", "deleting_beyond_the_end_is_out_of_range", cases::deleteBeyond);
        suite.add("configs", "e11_size_retention_is_per_partition", cases::sizeRetention);
        suite.add("configs", "e12_time_retention_goes_by_the_largest_timestamp", cases::timeRetention);
        suite.add("configs", "e12_expired_active_segment_goes_too", cases::activeSegment);
        suite.add("configs", "records_stay_seven_days_unless_the_topic_says_otherwise", cases::retentionOfATopic);
        suite.add("configs", "compacted_topic_deletes_by_time_only_if_it_is_told_to", cases::compactAndDelete);
    }

    private static ConfigResource topicResource(String topic) {
        return new ConfigResource(ConfigResource.Type.TOPIC, topic);
    }

    private ConfigResource brokerResource() throws Exception {
        int id = fixture.admin().describeCluster().nodes().get().iterator().next().id();
        return new ConfigResource(ConfigResource.Type.BROKER, String.valueOf(id));
    }

    private Config describe(ConfigResource resource) throws Exception {
        DescribeConfigsOptions options = new DescribeConfigsOptions().includeSynonyms(true).includeDocumentation(false);
        return fixture.admin().describeConfigs(List.of(resource), options).all().get().get(resource);
    }

    private void alter(ConfigResource resource, AlterConfigOp.OpType type, String name, String value) throws Exception {
        alter(resource, type, name, value, new AlterConfigsOptions());
    }

    private void alter(ConfigResource resource, AlterConfigOp.OpType type, String name, String value,
            AlterConfigsOptions options) throws Exception {
        Map<ConfigResource, Collection<AlterConfigOp>> change =
                Map.of(resource, List.of(new AlterConfigOp(new ConfigEntry(name, value), type)));
        fixture.admin().incrementalAlterConfigs(change, options).all().get();
    }

    private static Map<String, ConfigEntry> byName(Config config) {
        Map<String, ConfigEntry> entries = new TreeMap<>();
        config.entries().forEach(entry -> entries.put(entry.name(), entry));
        return entries;
    }

    private void topicKeys() throws Exception {
        Map<String, ConfigEntry> entries = byName(describe(topicResource(fixture.topic(1))));
        // A server may have keys of its own beside Kafka's.
        entries.keySet().removeIf(name -> name.startsWith("millstream."));
        Check.equal(new TreeSet<>(LogConfig.nonInternalConfigNames()), new TreeSet<>(entries.keySet()), "keys");
        LogConfig defaults = new LogConfig(Map.of());
        List<String> wrong = new ArrayList<>();
        for (ConfigEntry entry : entries.values()) {
            ConfigDef.Type type = LogConfig.configType(entry.name()).orElseThrow();
            Object plain = defaults.originals().containsKey(entry.name()) ? null : defaults.values().get(entry.name());
            String expected = ConfigDef.convertToString(plain, type);
            boolean sameValue = java.util.Objects.equals(entry.value(), expected);
            if (!sameValue || !entry.type().name().equals(type.name()) || entry.isReadOnly() || entry.isSensitive()
                    || !entry.isDefault() && entry.source() != ConfigEntry.ConfigSource.STATIC_BROKER_CONFIG) {
                wrong.add(entry + " expected " + expected);
            }
        }
        // What a server was started with may differ from the default of its key.
        wrong.removeIf(line -> line.contains("source=STATIC_BROKER_CONFIG"));
        // With eligible leader replicas the cluster's own setting takes the place of this default.
        wrong.removeIf(line -> line.startsWith("ConfigEntry(name=min.insync.replicas, value=1,"));
        Check.equal(List.of(), wrong, "keys that are described otherwise");
    }

    private void brokerKeys() throws Exception {
        Map<String, ConfigEntry> entries = byName(describe(brokerResource()));
        Set<String> missing = new TreeSet<>(AbstractKafkaConfig.CONFIG_DEF.names());
        AbstractKafkaConfig.CONFIG_DEF.configKeys().values().stream().filter(key -> key.internalConfig)
                .forEach(key -> missing.remove(key.name));
        missing.removeAll(entries.keySet());
        Check.equal(Set.of(), missing, "keys that are missing");
        Check.equal("168", entries.get("log.retention.hours").value(), "log.retention.hours");
        Check.equal("1073741824", entries.get("log.segment.bytes").value(), "log.segment.bytes");
        Check.equal(true, entries.get("log.retention.hours").isReadOnly(), "log.retention.hours is read-only");
        Check.equal(false, entries.get("log.retention.ms").isReadOnly(), "log.retention.ms is read-only");
        Check.equal(null, entries.get("ssl.key.password").value(), "a secret's value");
        Check.equal(true, entries.get("ssl.key.password").isSensitive(), "ssl.key.password is sensitive");
    }

    private static List<String> sources(ConfigEntry entry) {
        List<String> sources = new ArrayList<>();
        entry.synonyms().forEach(synonym -> sources.add(synonym.source() + " " + synonym.name()));
        return sources;
    }

    private void synonyms() throws Exception {
        ConfigResource topic = topicResource(fixture.topic(1, "max.message.bytes", "100000"));
        ConfigEntry entry = describe(topic).get("max.message.bytes");
        Check.equal(ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG, entry.source(), "source");
        Check.equal(List.of("DYNAMIC_TOPIC_CONFIG max.message.bytes", "DEFAULT_CONFIG message.max.bytes"),
                sources(entry), "synonyms");
        ConfigEntry plain = describe(topic).get("cleanup.policy");
        Check.equal(ConfigEntry.ConfigSource.DEFAULT_CONFIG, plain.source(), "source of a default");
        Check.equal(List.of("DEFAULT_CONFIG log.cleanup.policy"), sources(plain), "synonyms of a default");
    }

    private void setAndDelete() throws Exception {
        ConfigResource resource = topicResource(fixture.topic(1));
        alter(resource, AlterConfigOp.OpType.SET, "retention.ms", "3600000");
        Check.eventually("set", () -> "3600000".equals(describe(resource).get("retention.ms").value()));
        alter(resource, AlterConfigOp.OpType.DELETE, "retention.ms", null);
        Check.eventually("default again", () -> "604800000".equals(describe(resource).get("retention.ms").value()));
        Check.equal(true, describe(resource).get("retention.ms").isDefault(), "is a default");
    }

    private void appendAndSubtract() throws Exception {
        ConfigResource resource = topicResource(fixture.topic(1));
        alter(resource, AlterConfigOp.OpType.APPEND, "cleanup.policy", "compact");
        Check.eventually("appended", () -> Set.of("delete", "compact").equals(
                Set.of(describe(resource).get("cleanup.policy").value().split(","))));
        alter(resource, AlterConfigOp.OpType.SUBTRACT, "cleanup.policy", "delete");
        Check.eventually("subtracted", () -> "compact".equals(describe(resource).get("cleanup.policy").value()));
    }

    private void validateOnly() throws Throwable {
        ConfigResource resource = topicResource(fixture.topic(1));
        AlterConfigsOptions validate = new AlterConfigsOptions().validateOnly(true);
        alter(resource, AlterConfigOp.OpType.SET, "retention.ms", "1", validate);
        Check.equal("604800000", describe(resource).get("retention.ms").value(), "retention.ms");
        Check.fails(InvalidConfigurationException.class,
                () -> alter(resource, AlterConfigOp.OpType.SET, "retention.ms", "soon", validate));
    }

    private void badValues() throws Throwable {
        ConfigResource resource = topicResource(fixture.topic(1));
        for (String[] pair : new String[][] {{"retention.ms", "soon"}, {"cleanup.policy", "forget"},
            {"segment.bytes", "10"}, {"no.such.key", "1"}, {"min.insync.replicas", "0"}}) {
            Check.fails(InvalidConfigurationException.class,
                    () -> alter(resource, AlterConfigOp.OpType.SET, pair[0], pair[1]));
        }
        Check.fails(InvalidConfigurationException.class,
                () -> alter(resource, AlterConfigOp.OpType.APPEND, "retention.ms", "1"));
    }

    private void unknownTopic() throws Throwable {
        ConfigResource resource = topicResource(Fixture.name("unknown"));
        Check.fails(UnknownTopicOrPartitionException.class, () -> describe(resource));
        Check.fails(UnknownTopicOrPartitionException.class,
                () -> alter(resource, AlterConfigOp.OpType.SET, "retention.ms", "1"));
    }

    private void brokerConfig() throws Exception {
        ConfigResource one = brokerResource();
        ConfigResource all = new ConfigResource(ConfigResource.Type.BROKER, "");
        String key = "log.cleaner.threads";
        alter(all, AlterConfigOp.OpType.SET, key, "2");
        Check.eventually("default for all", () -> "2".equals(describe(one).get(key).value()));
        Check.equal(ConfigEntry.ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, describe(one).get(key).source(), "source");
        Check.equal("2", describe(all).get(key).value(), "as the default is described");
        alter(all, AlterConfigOp.OpType.DELETE, key, null);
        Check.eventually("back to the start", () -> "1".equals(describe(one).get(key).value()));
        alter(one, AlterConfigOp.OpType.SET, "log.retention.bytes", "123456789");
        Check.eventually("for one", () -> "123456789".equals(describe(one).get("log.retention.bytes").value()));
        Check.equal(ConfigEntry.ConfigSource.DYNAMIC_BROKER_CONFIG, describe(one).get("log.retention.bytes").source(),
                "source");
        alter(one, AlterConfigOp.OpType.DELETE, "log.retention.bytes", null);
        Check.eventually("back to the start", () -> "-1".equals(describe(one).get("log.retention.bytes").value()));
    }

    private void staticKey() throws Throwable {
        ConfigResource one = brokerResource();
        Check.fails(InvalidRequestException.class,
                () -> alter(one, AlterConfigOp.OpType.SET, "log.retention.hours", "1"));
    }

    private void limitTakesEffect() throws Throwable {
        String topic = fixture.topic(1);
        String value = "x".repeat(5000);
        fixture.send(topic, 0, value);
        alter(topicResource(topic), AlterConfigOp.OpType.SET, "max.message.bytes", "2000");
        Check.eventually("the limit holds", () -> {
            try {
                fixture.send(topic, 0, value);
                return false;
            } catch (java.util.concurrent.ExecutionException error) {
                return error.getCause() instanceof RecordTooLargeException;
            }
        });
        alter(topicResource(topic), AlterConfigOp.OpType.DELETE, "max.message.bytes", null);
        Check.eventually("the limit is gone", () -> {
            try {
                fixture.send(topic, 0, value);
                return true;
            } catch (java.util.concurrent.ExecutionException error) {
                return false;
            }
        });
    }

    private void clusterDefault() throws Exception {
        ConfigResource all = new ConfigResource(ConfigResource.Type.BROKER, "");
        ConfigResource topic = topicResource(fixture.topic(1));
        alter(all, AlterConfigOp.OpType.SET, "log.retention.ms", "500000000");
        try {
            Check.eventually("milliseconds win over hours",
                    () -> "500000000".equals(describe(topic).get("retention.ms").value()));
            Check.equal("DYNAMIC_DEFAULT_BROKER_CONFIG log.retention.ms",
                    sources(describe(topic).get("retention.ms")).get(0), "first synonym");
        } finally {
            alter(all, AlterConfigOp.OpType.DELETE, "log.retention.ms", null);
        }
        Check.eventually("hours again", () -> "604800000".equals(describe(topic).get("retention.ms").value()));
    }

    private int partitionCount(String topic) throws Exception {
        return fixture.admin().describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size();
    }

    private void createPartitions() throws Throwable {
        String topic = fixture.topic(2);
        fixture.admin().createPartitions(Map.of(topic, NewPartitions.increaseTo(3)),
                new CreatePartitionsOptions().validateOnly(true)).all().get();
        Check.equal(2, partitionCount(topic), "partitions after validating only");
        fixture.admin().createPartitions(Map.of(topic, NewPartitions.increaseTo(4))).all().get();
        Check.eventually("four partitions", () -> partitionCount(topic) == 4);
        fixture.send(topic, 3, "in the new one");
        Check.equal(1, fixture.readAll(topic).size(), "records");
        for (int count : new int[] {4, 2}) {
            Check.fails(InvalidPartitionsException.class, () -> fixture.admin()
                    .createPartitions(Map.of(topic, NewPartitions.increaseTo(count))).all().get());
        }
        Check.fails(UnknownTopicOrPartitionException.class, () -> fixture.admin()
                .createPartitions(Map.of(Fixture.name("unknown"), NewPartitions.increaseTo(4))).all().get());
    }

    private void partitionsForGroup() throws Exception {
        String topic = fixture.topic(2);
        String group = Fixture.name("e32");
        try (Member first = new Member(fixture.member(group, "metadata.max.age.ms", "500"), topic);
                Member second = new Member(fixture.member(group, "metadata.max.age.ms", "500"), topic)) {
            Check.eventually("one each", () -> first.owned().size() == 1 && second.owned().size() == 1);
            fixture.admin().createPartitions(Map.of(topic, NewPartitions.increaseTo(4))).all().get();
            Check.eventually("two each", () -> first.owned().size() == 2 && second.owned().size() == 2);
            for (int partition = 0; partition < 4; partition++) {
                fixture.send(topic, partition, "p" + partition);
            }
            Check.eventually("everything is read", () -> first.values.size() + second.values.size() == 4);
        }
    }

    private long deleteBefore(TopicPartition partition, long offset) throws Exception {
        return fixture.admin().deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(offset))).lowWatermarks()
                .get(partition).get().lowWatermark();
    }

    private void deleteRecords() throws Throwable {
        String topic = fixture.topic(1);
        TopicPartition partition = new TopicPartition(topic, 0);
        fixture.send(topic, 0, "a", "b", "c", "d", "e");
        Check.equal(2L, deleteBefore(partition, 2), "low watermark");
        Check.equal(List.of("c", "d", "e"), Fixture.values(fixture.readAll(topic)), "left");
        Check.equal(2L, deleteBefore(partition, 1), "low watermark does not go back");
        try (KafkaConsumer<byte[], byte[]> consumer = fixture.consumer("auto.offset.reset", "none")) {
            consumer.assign(List.of(partition));
            consumer.seek(partition, 1);
            Check.fails(OffsetOutOfRangeException.class, () -> {
                while (true) {
                    consumer.poll(Duration.ofMillis(200));
                }
            });
        }
        Check.equal(5L, deleteBefore(partition, -1), "all");
        Check.equal(0, fixture.readAll(topic).size(), "left");
        Check.equal(5L, fixture.send(topic, 0, "f").get(0).offset(), "offsets go on");
    }

    private void deleteInsideBatch() throws Exception {
        String topic = fixture.topic(1);
        try (KafkaProducer<byte[], byte[]> producer = fixture.producer("linger.ms", "500")) {
            for (int number = 0; number < 10; number++) {
                producer.send(Fixture.record(topic, 0, null, String.valueOf(number)));
            }
        }
        Check.equal(6L, deleteBefore(new TopicPartition(topic, 0), 6), "low watermark");
        Check.equal(List.of("6", "7", "8", "9"), Fixture.values(fixture.readAll(topic)), "left");
    }

    private void deleteBeyond() throws Throwable {
        String topic = fixture.topic(1);
        fixture.send(topic, 0, "a");
        Check.fails(org.apache.kafka.common.errors.OffsetOutOfRangeException.class,
                () -> deleteBefore(new TopicPartition(topic, 0), 2));
    }

    private void fill(String topic, int partition, int mebibytes, long timestamp) throws Exception {
        byte[] value = new byte[64 << 10];
        Arrays.fill(value, (byte) 'x');
        try (KafkaProducer<byte[], byte[]> producer = fixture.producer("batch.size", "1")) {
            for (int number = 0; number < mebibytes * 16; number++) {
                producer.send(new ProducerRecord<>(topic, partition, timestamp, null, value));
            }
        }
    }

    private long beginning(TopicPartition partition) throws Exception {
        try (KafkaConsumer<byte[], byte[]> consumer = fixture.consumer()) {
            return consumer.beginningOffsets(List.of(partition)).get(partition);
        }
    }

    /** What a partition keeps: at least the limit, and less than the limit plus one segment. */
    private void sizeRetention() throws Exception {
        String topic = fixture.topic(2, "segment.bytes", String.valueOf(SEGMENT_BYTES), "retention.bytes",
                String.valueOf(RETENTION_BYTES));
        long record = (64 << 10) + 100;
        Map<Integer, Long> kept = new HashMap<>();
        for (int partition = 0; partition < 2; partition++) {
            fill(topic, partition, 8, System.currentTimeMillis());
        }
        for (int number = 0; number < 2; number++) {
            TopicPartition partition = new TopicPartition(topic, number);
            Check.eventually("partition " + partition + " is within its limit", () -> {
                long left = 128 - beginning(partition);
                kept.put(partition.partition(), left);
                return left * record < RETENTION_BYTES + SEGMENT_BYTES + record;
            });
            Check.that(kept.get(number) * record >= RETENTION_BYTES, "the limit is kept: " + kept);
        }
    }

    private void timeRetention() throws Exception {
        String topic = fixture.topic(1, "segment.bytes", String.valueOf(SEGMENT_BYTES), "retention.ms",
                String.valueOf(3_600_000));
        TopicPartition partition = new TopicPartition(topic, 0);
        long now = System.currentTimeMillis();
        long old = now - 7_200_000;
        // Two old segments; a third whose one young record keeps its old ones; then the active one.
        fill(topic, 0, 3, old);
        long end = fixture.admin().listOffsets(Map.of(partition,
                org.apache.kafka.clients.admin.OffsetSpec.latest())).partitionResult(partition).get().offset();
        fixture.send(topic, 0, "young");
        fill(topic, 0, 3, old);
        fixture.send(topic, 0, "active");
        Check.eventually("old segments are gone", () -> beginning(partition) > 0);
        Check.that(beginning(partition) <= end, "the young record is there: " + beginning(partition) + " <= " + end);
        List<String> values = Fixture.values(fixture.readAll(topic));
        Check.that(values.contains("young") && values.contains("active"), "young records are there");
        Check.that(values.size() > 2, "old ones beside the young one are there");
    }

    private void activeSegment() throws Exception {
        String topic = fixture.topic(1, "retention.ms", "1000");
        TopicPartition partition = new TopicPartition(topic, 0);
        fixture.send(topic, 0, "soon gone");
        Check.eventually("the log is empty", () -> beginning(partition) == 1);
        Check.equal(1L, fixture.send(topic, 0, "later").get(0).offset(), "offsets go on");
    }

    private void sendAged(String topic, String key, long age) throws Exception {
        try (KafkaProducer<byte[], byte[]> producer = fixture.producer()) {
            long timestamp = System.currentTimeMillis() - age;
            producer.send(new ProducerRecord<>(topic, 0, timestamp, Fixture.bytes(key), Fixture.bytes("v"))).get();
        }
    }

    /** The ones that stay are looked at after the others have gone: the server has looked at all of them since. */
    private void retentionOfATopic() throws Exception {
        long day = 24 * 3_600_000L;
        String young = fixture.topic(1);
        String forever = fixture.topic(1, "retention.ms", "-1");
        String brief = fixture.topic(1, "retention.ms", String.valueOf(3_600_000));
        String old = fixture.topic(1);
        sendAged(young, "k", 6 * day);
        sendAged(forever, "k", 400 * day);
        sendAged(brief, "k", 2 * 3_600_000);
        sendAged(old, "k", 8 * day);
        for (String topic : List.of(old, brief)) {
            Check.eventually(topic + " is empty", () -> beginning(new TopicPartition(topic, 0)) == 1);
        }
        for (String topic : List.of(young, forever)) {
            Check.equal(List.of("v"), Fixture.values(fixture.readAll(topic)), "what stays in " + topic);
        }
    }

    private void compactAndDelete() throws Exception {
        String keeps = fixture.topic(1, "cleanup.policy", "compact", "retention.ms", "3600000");
        String deletes = fixture.topic(1, "cleanup.policy", "compact,delete", "retention.ms", "3600000");
        for (String topic : List.of(keeps, deletes)) {
            sendAged(topic, "k", 7_200_000);
        }
        Check.eventually("the one is empty", () -> beginning(new TopicPartition(deletes, 0)) == 1);
        Check.equal(List.of("v"), Fixture.values(fixture.readAll(keeps)), "what stays in the other");
    }
}
