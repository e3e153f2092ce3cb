import java.util.ArrayList;
import java.util.Base64;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;

/**
 * Prints what a cluster serves, one fact a line, so that two clusters can be compared: ids and configurations of topics,
 * where partitions begin and end, every record with all that a consumer sees of it, what groups have committed.
 *
 * <p>Arguments: bootstrap server, groups and topics, the last two separated by commas.
 */
final class Contents {
    private final Fixture fixture;

    private Contents(Fixture fixture) {
        this.fixture = fixture;
    }

    public static void main(String[] arguments) throws Exception {
        Contents contents = new Contents(new Fixture(arguments[0]));
        List<String> topics = List.of(arguments[2].split(","));
        contents.configs(topics);
        for (String topic : topics) {
            contents.topic(topic);
        }
        contents.groups(List.of(arguments[1].split(",")));
        contents.fixture.admin().close();
    }

    private static void line(Object... fields) {
        StringBuilder text = new StringBuilder();
        for (Object field : fields) {
            text.append(text.isEmpty() ? "" : "\t").append(field);
        }
        System.out.println(text);
    }

    private static String base64(byte[] bytes) {
        return bytes == null ? "null" : "'" + Base64.getEncoder().encodeToString(bytes) + "'";
    }

    private void configs(List<String> topics) throws Exception {
        List<ConfigResource> resources = new ArrayList<>();
        resources.add(new ConfigResource(ConfigResource.Type.BROKER, ""));
        topics.forEach(topic -> resources.add(new ConfigResource(ConfigResource.Type.TOPIC, topic)));
        Map<ConfigResource, Config> described = fixture.admin().describeConfigs(resources).all().get();
        for (ConfigResource resource : resources) {
            described.get(resource).entries().stream()
                    .filter(entry -> entry.source() == ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG
                            || entry.source() == ConfigEntry.ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)
                    .filter(entry -> resource.type() == ConfigResource.Type.BROKER
                            || entry.source() == ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG)
                    .sorted(Comparator.comparing(ConfigEntry::name))
                    .forEach(entry -> line("config", resource.type(), resource.name(), entry.name(), entry.value()));
        }
    }

    private void topic(String topic) throws Exception {
        Admin admin = fixture.admin();
        TopicDescription description = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
        line("topic", topic, description.topicId());
        try (KafkaConsumer<byte[], byte[]> consumer = fixture.consumer()) {
            List<TopicPartition> partitions = fixture.partitions(consumer, topic);
            Map<TopicPartition, Long> starts = new TreeMap<>(Comparator.comparingInt(TopicPartition::partition));
            starts.putAll(consumer.beginningOffsets(partitions));
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            starts.forEach((partition, start) ->
                    line("partition", topic, partition.partition(), start, ends.get(partition)));
        }
        List<ConsumerRecord<byte[], byte[]>> records = fixture.readAll(topic);
        records.sort(Comparator.<ConsumerRecord<byte[], byte[]>>comparingInt(ConsumerRecord::partition)
                .thenComparingLong(ConsumerRecord::offset));
        for (ConsumerRecord<byte[], byte[]> record : records) {
            StringBuilder headers = new StringBuilder();
            for (Header header : record.headers()) {
                headers.append(header.key()).append('=').append(base64(header.value())).append(';');
            }
            line("record", topic, record.partition(), record.offset(), record.timestamp(), record.timestampType(),
                    record.leaderEpoch().orElse(-1), base64(record.key()), base64(record.value()), headers);
        }
    }

    private void groups(List<String> groups) throws Exception {
        for (String group : groups) {
            Map<TopicPartition, OffsetAndMetadata> offsets = new TreeMap<>(
                    Comparator.comparing(TopicPartition::topic).thenComparingInt(TopicPartition::partition));
            offsets.putAll(fixture.admin()
                    .listConsumerGroupOffsets(Map.of(group, new ListConsumerGroupOffsetsSpec()))
                    .partitionsToOffsetAndMetadata(group).get());
            offsets.forEach((partition, offset) -> line("offset", group, partition, offset.offset(),
                    offset.leaderEpoch().orElse(-1), offset.metadata()));
        }
    }
}
