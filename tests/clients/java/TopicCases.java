import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.CreateTopicsResult;
import org.apache.kafka.clients.admin.DescribeClusterResult;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.QuorumInfo;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.TopicCollection;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.errors.InvalidConfigurationException;
import org.apache.kafka.common.errors.InvalidPartitionsException;
import org.apache.kafka.common.errors.InvalidReplicaAssignmentException;
import org.apache.kafka.common.errors.InvalidReplicationFactorException;
import org.apache.kafka.common.errors.InvalidTopicException;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.errors.UnknownTopicIdException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;

/** Topics and the cluster, as the admin client sees them. */
final class TopicCases {
    private final Fixture fixture;

    private TopicCases(Fixture fixture) {
        this.fixture = fixture;
    }

    static void addTo(Suite suite, Fixture fixture) {
        TopicCases cases = new TopicCases(fixture);
        suite.add("core", "created_topic_is_described", cases::createdTopicIsDescribed);
        suite.add("core", "created_topic_is_listed_and_deleted_one_is_not", cases::listing);
        suite.add("core", "creation_answers_with_id_and_counts", cases::creationAnswers);
        suite.add("core", "topic_created_again_is_empty_and_has_another_id", cases::createdAgain);
        suite.add("core", "topic_is_described_and_deleted_by_id", cases::byId);
        suite.add("core", "existing_topic_is_refused", cases::existingTopic);
        suite.add("core", "bad_names_are_refused", cases::badNames);
        suite.add("core", "names_that_collide_are_refused", cases::collidingNames);
        suite.add("core", "e20_replication_factor_above_brokers_is_refused", cases::replicationFactor);
        suite.add("core", "partition_count_must_be_positive", cases::partitionCount);
        suite.add("core", "unknown_topic_config_is_refused", cases::unknownConfig);
        suite.add("core", "validating_only_creates_nothing", cases::validateOnly);
        suite.add("core", "replicas_can_be_assigned_by_hand", cases::assignedByHand);
        suite.add("core", "partitions_and_replicas_default_to_the_brokers", cases::defaults);
        suite.add("core", "deleting_an_unknown_topic_is_an_error", cases::deleteUnknown);
        suite.add("core", "one_bad_topic_does_not_hurt_its_neighbours", cases::neighbours);
        suite.add("core", "cluster_is_described", cases::cluster);
        suite.add("core", "many_topics_are_described_in_pages", cases::manyTopics);
        suite.add("core", "producing_creates_the_topic", cases::autoCreation);
        suite.add("core", "quorum_has_one_voter_that_leads", cases::quorum);
        suite.add("core", "features_are_finalized", cases::features);
    }

    private void createdTopicIsDescribed() throws Exception {
        String topic = fixture.topic(3);
        TopicDescription described = describe(topic);
        Check.equal(3, described.partitions().size(), "partitions");
        Check.equal(false, described.isInternal(), "internal");
        Check.that(!described.topicId().equals(Uuid.ZERO_UUID), "the topic has an id");
        described.partitions().forEach(partition -> {
            Check.that(partition.leader() != null, "partition " + partition.partition() + " has a leader");
            Check.equal(1, partition.replicas().size(), "replicas");
            Check.equal(partition.replicas(), partition.isr(), "in-sync replicas");
        });
    }

    /** A broker may hear of a new topic a moment after the controller has answered. */
    private TopicDescription described(String topic) throws Exception {
        Check.eventually(topic + " is known", () -> names().contains(topic));
        return describe(topic);
    }

    private TopicDescription describe(String topic) throws Exception {
        return fixture.admin().describeTopics(List.of(topic)).allTopicNames().get().get(topic);
    }

    private void listing() throws Throwable {
        String topic = fixture.topic(1);
        Check.that(names().contains(topic), "the list holds " + topic);
        fixture.admin().deleteTopics(List.of(topic)).all().get();
        Check.eventually("the list does not hold " + topic, () -> !names().contains(topic));
        Check.fails(UnknownTopicOrPartitionException.class, () -> describe(topic));
    }

    private Set<String> names() throws Exception {
        return fixture.admin().listTopics().names().get();
    }

    private void creationAnswers() throws Exception {
        String topic = Fixture.name("answers");
        NewTopic wanted = new NewTopic(topic, 2, (short) 1).configs(Map.of("retention.ms", "1234567"));
        CreateTopicsResult result = fixture.admin().createTopics(List.of(wanted));
        Check.equal(2, result.numPartitions(topic).get(), "partitions");
        Check.equal(1, result.replicationFactor(topic).get(), "replication factor");
        Check.equal(described(topic).topicId(), result.topicId(topic).get(), "id");
        Check.equal("1234567", result.config(topic).get().get("retention.ms").value(), "retention.ms");
        Check.equal("delete", result.config(topic).get().get("cleanup.policy").value(), "cleanup.policy");
    }

    private void createdAgain() throws Exception {
        String topic = fixture.topic(1);
        fixture.send(topic, 0, "old");
        Uuid first = describe(topic).topicId();
        fixture.admin().deleteTopics(List.of(topic)).all().get();
        Check.eventually("the name is free", () -> !names().contains(topic));
        fixture.admin().createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get();
        Check.that(!first.equals(described(topic).topicId()), "another id");
        Check.eventually("its log begins anew", () -> fixture.readAll(topic).isEmpty());
        Check.equal(0L, fixture.send(topic, 0, "new").get(0).offset(), "the new log begins at 0");
        Check.equal(List.of("new"), Fixture.values(fixture.readAll(topic)), "values");
    }

    private void byId() throws Throwable {
        Uuid id = describe(fixture.topic(1)).topicId();
        Check.equal(1, fixture.admin().describeTopics(TopicCollection.ofTopicIds(List.of(id))).allTopicIds().get()
                .get(id).partitions().size(), "partitions");
        fixture.admin().deleteTopics(TopicCollection.ofTopicIds(List.of(id))).all().get();
        Check.eventually("the id is gone", () -> {
            try {
                fixture.admin().describeTopics(TopicCollection.ofTopicIds(List.of(id))).allTopicIds().get();
                return false;
            } catch (java.util.concurrent.ExecutionException error) {
                return error.getCause() instanceof UnknownTopicIdException;
            }
        });
    }

    private void existingTopic() throws Throwable {
        String topic = fixture.topic(1);
        TopicExistsException error = Check.fails(TopicExistsException.class, () -> create(topic, 1, 1));
        Check.contains(error.getMessage(), topic);
    }

    private void create(String topic, int partitions, int replicas) throws Exception {
        fixture.admin().createTopics(List.of(new NewTopic(topic, partitions, (short) replicas))).all().get();
    }

    private void badNames() throws Throwable {
        for (String name : List.of(".", "..", "a/b", "a b", "ä", "x".repeat(250))) {
            Check.fails(InvalidTopicException.class, () -> create(name, 1, 1));
        }
    }

    private void collidingNames() throws Throwable {
        String stem = Fixture.name("collide");
        create(stem + ".a", 1, 1);
        Check.fails(InvalidTopicException.class, () -> create(stem + "_a", 1, 1));
    }

    private void replicationFactor() throws Throwable {
        String topic = Fixture.name("e20");
        Throwable error = Check.fails(InvalidReplicationFactorException.class, () -> create(topic, 4, 2));
        Check.equal("Unable to replicate the partition 2 time(s): The target replication factor of 2 cannot be reached "
                + "because only 1 broker(s) are registered or some brokers have all their log directories cordoned.",
                error.getMessage(), "message");
        Check.that(!names().contains(topic), "nothing was created");
    }

    private void partitionCount() throws Throwable {
        Check.fails(InvalidPartitionsException.class, () -> create(Fixture.name("zero"), 0, 1));
        Check.fails(InvalidReplicationFactorException.class, () -> create(Fixture.name("zero"), 1, 0));
    }

    private void unknownConfig() throws Throwable {
        NewTopic topic = new NewTopic(Fixture.name("config"), 1, (short) 1);
        for (Map<String, String> config : List.of(Map.of("no.such.key", "1"), Map.of("retention.ms", "soon"),
                Map.of("segment.bytes", "100"))) {
            Check.fails(InvalidConfigurationException.class,
                    () -> fixture.admin().createTopics(List.of(topic.configs(config))).all().get());
        }
    }

    private void validateOnly() throws Throwable {
        String topic = Fixture.name("validate");
        CreateTopicsOptions options = new CreateTopicsOptions().validateOnly(true);
        fixture.admin().createTopics(List.of(new NewTopic(topic, 1, (short) 1)), options).all().get();
        Check.that(!names().contains(topic), "nothing was created");
        String existing = fixture.topic(1);
        Check.fails(TopicExistsException.class, () -> fixture.admin()
                .createTopics(List.of(new NewTopic(existing, 1, (short) 1)), options).all().get());
    }

    private void assignedByHand() throws Throwable {
        int broker = fixture.admin().describeCluster().nodes().get().iterator().next().id();
        String topic = Fixture.name("assigned");
        Map<Integer, List<Integer>> assignment = Map.of(0, List.of(broker), 1, List.of(broker));
        fixture.admin().createTopics(List.of(new NewTopic(topic, assignment))).all().get();
        Check.equal(2, described(topic).partitions().size(), "partitions");
        Map<Integer, List<Integer>> stranger = Map.of(0, List.of(broker + 1000));
        Check.fails(InvalidReplicaAssignmentException.class, () -> fixture.admin()
                .createTopics(List.of(new NewTopic(Fixture.name("assigned"), stranger))).all().get());
    }

    private void defaults() throws Exception {
        String topic = Fixture.name("defaults");
        fixture.admin().createTopics(List.of(new NewTopic(topic, Optional.empty(), Optional.empty()))).all().get();
        Check.equal(1, described(topic).partitions().size(), "num.partitions");
        Check.equal(1, describe(topic).partitions().get(0).replicas().size(), "default.replication.factor");
    }

    private void deleteUnknown() throws Throwable {
        Check.fails(UnknownTopicOrPartitionException.class,
                () -> fixture.admin().deleteTopics(List.of(Fixture.name("unknown"))).all().get());
    }

    private void neighbours() throws Throwable {
        String existing = fixture.topic(1);
        String fresh = Fixture.name("fresh");
        CreateTopicsResult result = fixture.admin().createTopics(
                List.of(new NewTopic(existing, 1, (short) 1), new NewTopic(fresh, 1, (short) 1)));
        Check.fails(TopicExistsException.class, () -> result.values().get(existing).get());
        result.values().get(fresh).get();
        Check.eventually("the good one was created", () -> names().contains(fresh));
    }

    private void cluster() throws Exception {
        DescribeClusterResult cluster = fixture.admin().describeCluster();
        Check.equal(22, cluster.clusterId().get().length(), "length of the cluster id");
        Check.equal(1, cluster.nodes().get().size(), "nodes");
        Check.that(cluster.controller().get() != null, "there is a controller");
        Check.equal(fixture.bootstrap,
                cluster.nodes().get().iterator().next().host() + ":" + cluster.nodes().get().iterator().next().port(),
                "advertised address");
        Set<AclOperation> operations = cluster.authorizedOperations().get();
        Check.equal(null, operations, "operations that nobody asked for");
    }

    private void manyTopics() throws Exception {
        List<NewTopic> topics = java.util.stream.IntStream.range(0, 30)
                .mapToObj(at -> new NewTopic(Fixture.name("many"), 4, (short) 1)).toList();
        fixture.admin().createTopics(topics).all().get();
        Collection<String> wanted = topics.stream().map(NewTopic::name).toList();
        Check.eventually("all are known", () -> names().containsAll(wanted));
        Map<String, TopicDescription> described = fixture.admin().describeTopics(wanted,
                new org.apache.kafka.clients.admin.DescribeTopicsOptions().partitionSizeLimitPerResponse(7))
                .allTopicNames().get();
        Check.equal(30, described.size(), "topics");
        described.values().forEach(topic -> Check.equal(4, topic.partitions().size(), "partitions of " + topic.name()));
        fixture.admin().deleteTopics(wanted).all().get();
    }

    private void autoCreation() throws Exception {
        String topic = Fixture.name("auto");
        try (KafkaProducer<byte[], byte[]> producer = fixture.producer()) {
            producer.send(Fixture.record(topic, null, null, "first")).get();
        }
        Check.equal(List.of("first"), Fixture.values(fixture.readAll(topic)), "values");
    }

    private void quorum() throws Exception {
        QuorumInfo quorum = fixture.admin().describeMetadataQuorum().quorumInfo().get();
        Check.equal(1, quorum.voters().size(), "voters");
        Check.equal(quorum.voters().get(0).replicaId(), quorum.leaderId(), "leader");
        Check.that(quorum.leaderEpoch() >= 1, "the leader has an epoch");
        Check.that(quorum.highWatermark() > 0, "metadata is committed");
    }

    private void features() throws Exception {
        var features = fixture.admin().describeFeatures().featureMetadata().get();
        Check.that(features.finalizedFeatures().containsKey("metadata.version"), "metadata.version is finalized");
        Check.that(features.finalizedFeaturesEpoch().isPresent(), "features have an epoch");
    }
}
