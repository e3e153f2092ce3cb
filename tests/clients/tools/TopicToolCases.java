import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** Topics, configs, the cluster: tools for administrators. */
final class TopicToolCases {
    private final Fixture fixture;

    private TopicToolCases(Fixture fixture) {
        this.fixture = fixture;
    }

    static void addTo(Suite suite, Fixture fixture) {
        TopicToolCases cases = new TopicToolCases(fixture);
        suite.add("core", "topics_creates_describes_lists_and_deletes", cases::topics);
        suite.add("core", "topics_script_creates_a_topic", cases::script);
        suite.add("core", "topics_tells_why_e20_cannot_be", cases::replicationFactor);
        suite.add("core", "broker_api_versions_shows_what_is_there", cases::apiVersions);
        suite.add("core", "cluster_tells_id_and_endpoints", cases::cluster);
        suite.add("core", "features_describes_metadata_version", cases::features);
        suite.add("core", "metadata_quorum_describes_one_voter", cases::quorum);
        suite.add("configs", "topics_adds_partitions", cases::addPartitions);
        suite.add("configs", "topics_shows_overridden_configs", cases::overrides);
        suite.add("configs", "configs_alters_and_describes_a_topic", cases::topicConfigs);
        suite.add("configs", "configs_alters_and_describes_a_broker", cases::brokerConfigs);
        suite.add("configs", "delete_records_moves_the_start", cases::deleteRecords);
    }

    private String topics(String... arguments) throws Exception {
        return Tool.ok("TopicCommand", "", with(arguments));
    }

    private String[] with(String... arguments) {
        String[] all = new String[arguments.length + 2];
        all[0] = "--bootstrap-server";
        all[1] = fixture.bootstrap;
        System.arraycopy(arguments, 0, all, 2, arguments.length);
        return all;
    }

    private void topics() throws Exception {
        String topic = Fixture.name("tool");
        Check.contains(topics("--create", "--topic", topic, "--partitions", "3", "--replication-factor", "1"),
                "Created topic " + topic + ".");
        Check.eventually("listed", () -> topics("--list").lines().anyMatch(topic::equals));
        List<String> described = topics("--describe", "--topic", topic).lines().toList();
        Check.equal(4, described.size(), "lines");
        Check.contains(described.get(0), "PartitionCount: 3");
        Check.contains(described.get(0), "ReplicationFactor: 1");
        Check.contains(described.get(3), "Partition: 2");
        Check.equal("", topics("--describe", "--under-replicated-partitions", "--topic", topic).strip(),
                "under-replicated partitions");
        topics("--delete", "--topic", topic);
        Check.eventually("deleted", () -> topics("--list").lines().noneMatch(topic::equals));
    }

    private void script() throws Exception {
        String topic = Fixture.name("script");
        Check.contains(Tool.script("topics", "", with("--create", "--topic", topic, "--partitions", "2")),
                "Created topic " + topic + ".");
    }

    private void replicationFactor() throws Exception {
        String topic = Fixture.name("e20");
        Tool.Result result = Tool.run("TopicCommand", "",
                with("--create", "--topic", topic, "--partitions", "1", "--replication-factor", "2"));
        Check.equal(1, result.code(), "exit code");
        Check.contains(result.output() + result.errors(), "The target replication factor of 2 cannot be reached");
    }

    private void apiVersions() throws Exception {
        String printed = Tool.ok("BrokerApiVersionsCommand", "", with());
        for (String api : List.of("Produce(0):", "Fetch(1):", "Metadata(3):", "ApiVersions(18):")) {
            Check.contains(printed, api);
        }
    }

    private void cluster() throws Exception {
        Check.contains(Tool.ok("ClusterTool", "", "cluster-id", "--bootstrap-server", fixture.bootstrap),
                "Cluster ID: ");
        Check.contains(Tool.ok("ClusterTool", "", "list-endpoints", "--bootstrap-server", fixture.bootstrap),
                "127.0.0.1");
    }

    private void features() throws Exception {
        Check.contains(Tool.ok("FeatureCommand", "", with("describe")), "Feature: metadata.version");
    }

    private void quorum() throws Exception {
        String status = Tool.ok("MetadataQuorumCommand", "", with("describe", "--status"));
        for (String line : List.of("ClusterId:", "LeaderId:", "LeaderEpoch:", "HighWatermark:", "CurrentVoters:")) {
            Check.contains(status, line);
        }
        Check.contains(Tool.ok("MetadataQuorumCommand", "", with("describe", "--replication")), "Leader");
    }

    private void addPartitions() throws Exception {
        String topic = fixture.topic(1);
        topics("--alter", "--topic", topic, "--partitions", "4");
        Check.eventually("four partitions",
                () -> topics("--describe", "--topic", topic).contains("PartitionCount: 4"));
    }

    private void overrides() throws Exception {
        String topic = fixture.topic(1, "retention.ms", "123456");
        Check.contains(topics("--describe", "--topic", topic), "retention.ms=123456");
        Check.contains(topics("--describe", "--topics-with-overrides"), topic);
    }

    private String configs(String... arguments) throws Exception {
        return Tool.ok("ConfigCommand", "", with(arguments));
    }

    private void topicConfigs() throws Exception {
        String topic = fixture.topic(1);
        String[] entity = {"--entity-type", "topics", "--entity-name", topic};
        Check.contains(configs("--alter", "--entity-type", "topics", "--entity-name", topic, "--add-config",
                "retention.ms=3600000,cleanup.policy=[compact,delete]"), "Completed updating config for topic " + topic);
        Check.eventually("described", () -> configs("--describe", entity[0], entity[1], entity[2], entity[3])
                .contains("retention.ms=3600000"));
        configs("--alter", "--entity-type", "topics", "--entity-name", topic, "--delete-config", "retention.ms");
        Check.eventually("deleted", () -> !configs("--describe", entity[0], entity[1], entity[2], entity[3])
                .contains("retention.ms"));
        Check.contains(configs("--describe", "--all", entity[0], entity[1], entity[2], entity[3]),
                "max.message.bytes=1048588");
    }

    private void brokerConfigs() throws Exception {
        String id = fixture.admin().describeCluster().nodes().get().iterator().next().idString();
        String[] entity = {"--describe", "--entity-type", "brokers", "--entity-name", id};
        configs("--alter", "--entity-type", "brokers", "--entity-name", id, "--add-config", "log.cleaner.threads=2");
        Check.eventually("set", () -> configs(entity).contains("log.cleaner.threads=2"));
        configs("--alter", "--entity-type", "brokers", "--entity-name", id, "--delete-config", "log.cleaner.threads");
        Check.eventually("deleted", () -> !configs(entity).contains("log.cleaner.threads=2"));
        configs("--alter", "--entity-type", "brokers", "--entity-default", "--add-config", "log.retention.ms=700000000");
        Check.eventually("default set", () -> configs("--describe", "--entity-type", "brokers", "--entity-default")
                .contains("log.retention.ms=700000000"));
        configs("--alter", "--entity-type", "brokers", "--entity-default", "--delete-config", "log.retention.ms");
    }

    private void deleteRecords() throws Exception {
        String topic = fixture.topic(1);
        fixture.send(topic, 0, "a", "b", "c");
        Path file = Files.createTempFile("delete-records", ".json");
        try {
            Files.writeString(file, "{\"version\": 1, \"partitions\": [{\"topic\": \"" + topic
                    + "\", \"partition\": 0, \"offset\": 2}]}");
            Check.contains(Tool.ok("DeleteRecordsCommand", "", with("--offset-json-file", file.toString())),
                    "low_watermark: 2");
        } finally {
            Files.delete(file);
        }
        Check.equal(List.of("c"), Fixture.values(fixture.readAll(topic)), "left");
    }
}
