import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.regex.Pattern;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec;
import org.apache.kafka.clients.admin.ListGroupsOptions;
import org.apache.kafka.clients.admin.MemberToRemove;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.GroupIdNotFoundException;
import org.apache.kafka.common.errors.GroupNotEmptyException;
import org.apache.kafka.common.errors.InvalidSessionTimeoutException;
import org.apache.kafka.common.errors.OffsetMetadataTooLarge;

/** Classic groups: who owns what, and where they go on. */
final class GroupCases {
    private final Fixture fixture;

    private GroupCases(Fixture fixture) {
        this.fixture = fixture;
    }

    static void addTo(Suite suite, Fixture fixture) {
        GroupCases cases = new GroupCases(fixture);
        suite.add("groups", "group_goes_on_where_it_committed", cases::resume);
        suite.add("groups", "e7_consumers_share_partitions", cases::sharing);
        suite.add("groups", "e8_join_leave_crash_and_a_second_group", cases::joinLeaveCrash);
        suite.add("groups", "e16_commit_behind_repeats_and_ahead_skips", cases::behindAndAhead);
        suite.add("groups", "e29_regex_finds_a_new_topic", cases::regex);
        for (String assignor : List.of("RangeAssignor", "RoundRobinAssignor", "StickyAssignor",
                "CooperativeStickyAssignor")) {
            suite.add("groups", "partitions_are_owned_once_with_" + assignor, () -> cases.assignor(assignor));
        }
        suite.add("groups", "committed_metadata_comes_back", cases::metadata);
        suite.add("groups", "metadata_above_4096_bytes_is_refused", cases::longMetadata);
        suite.add("groups", "async_commit_calls_back", cases::commitAsync);
        suite.add("groups", "automatic_commit_happens_at_close", cases::autoCommit);
        suite.add("groups", "static_member_returns_to_its_partitions_without_rebalance", cases::staticMember);
        suite.add("groups", "removed_member_cannot_commit", cases::removedMember);
        suite.add("groups", "session_below_the_brokers_floor_is_refused", cases::shortSession);
        suite.add("groups", "group_is_described_and_listed", cases::described);
        suite.add("groups", "admin_moves_and_deletes_offsets", cases::adminOffsets);
        suite.add("groups", "group_with_members_cannot_be_deleted", cases::deletion);
        suite.add("groups", "unknown_group_is_not_found", cases::unknownGroup);
        suite.add("groups", "consumer_without_membership_commits_to_a_group", cases::simpleCommit);
    }

    private static List<ConsumerRecord<byte[], byte[]>> next(KafkaConsumer<byte[], byte[]> consumer, int count) {
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        Fixture.poll(consumer, records, () -> records.size() >= count);
        return records;
    }

    private static String[] numbers(int from, int to) {
        String[] numbers = new String[to - from];
        for (int at = 0; at < numbers.length; at++) {
            numbers[at] = String.valueOf(from + at);
        }
        return numbers;
    }

    private void resume() throws Exception {
        String topic = fixture.topic(1);
        String group = Fixture.name("g");
        fixture.send(topic, 0, numbers(0, 10));
        try (KafkaConsumer<byte[], byte[]> consumer = fixture.member(group)) {
            consumer.subscribe(List.of(topic));
            Check.equal(10, next(consumer, 10).size(), "records");
            consumer.commitSync();
        }
        fixture.send(topic, 0, numbers(10, 13));
        try (KafkaConsumer<byte[], byte[]> consumer = fixture.member(group)) {
            consumer.subscribe(List.of(topic));
            Check.equal(List.of("10", "11", "12"), Fixture.values(next(consumer, 3)), "after the commit");
        }
    }

    private Member member(String group, String topic, String... overrides) {
        return new Member(fixture.member(group, overrides), topic);
    }

    /** Waits until every partition is owned by exactly one member, and returns how many each owns, smallest first. */
    private List<Integer> settled(List<Member> members, int partitions, String shape) throws Exception {
        List<Integer> counts = new ArrayList<>();
        Check.eventually(shape, () -> {
            counts.clear();
            Set<Integer> all = new TreeSet<>();
            int sum = 0;
            for (Member member : members) {
                Set<Integer> owned = member.owned();
                all.addAll(owned);
                sum += owned.size();
                counts.add(owned.size());
            }
            counts.sort(null);
            return all.size() == partitions && sum == partitions && counts.toString().equals(shape);
        });
        return counts;
    }

    private void sharing() throws Exception {
        String topic = fixture.topic(4);
        String group = Fixture.name("e7");
        List<Member> members = new ArrayList<>();
        try {
            for (String shape : List.of("[4]", "[2, 2]", "[1, 1, 2]", "[1, 1, 1, 1]", "[0, 1, 1, 1, 1]")) {
                members.add(member(group, topic));
                settled(members, 4, shape);
            }
        } finally {
            for (Member member : members) {
                member.close();
            }
        }
    }

    private void joinLeaveCrash() throws Exception {
        String topic = fixture.topic(4);
        String group = Fixture.name("e8");
        try (Member other = member(Fixture.name("e8-other"), topic); Member first = member(group, topic)) {
            settled(List.of(first), 4, "[4]");
            settled(List.of(other), 4, "[4]");
            Member second = member(group, topic);
            settled(List.of(first, second), 4, "[2, 2]");
            second.close();
            settled(List.of(first), 4, "[4]");
            Process third = new ProcessBuilder(ProcessHandle.current().info().command().orElseThrow(), "-cp",
                    System.getProperty("java.class.path"), "CrashingMember", fixture.bootstrap, group, topic)
                    .redirectError(ProcessBuilder.Redirect.DISCARD).start();
            try (BufferedReader output = new BufferedReader(new InputStreamReader(third.getInputStream()))) {
                Check.that(output.readLine() != null, "the third member got partitions");
                Check.eventually("the first member shares", () -> first.owned().size() == 2);
            } finally {
                third.destroyForcibly().waitFor();
            }
            settled(List.of(first), 4, "[4]");
            for (int partition = 0; partition < 4; partition++) {
                fixture.send(topic, partition, "m" + partition);
            }
            for (Member member : List.of(first, other)) {
                Check.eventually("all messages", () -> new TreeSet<>(member.values)
                        .equals(Set.of("m0", "m1", "m2", "m3")));
            }
            Check.equal(1, other.assignments(), "assignments of the undisturbed group");
        }
    }

    private void behindAndAhead() throws Exception {
        String topic = fixture.topic(1);
        TopicPartition partition = new TopicPartition(topic, 0);
        fixture.send(topic, 0, numbers(0, 20));
        for (long committed : new long[] {5, 15}) {
            String group = Fixture.name("e16");
            try (KafkaConsumer<byte[], byte[]> consumer = fixture.member(group, "max.poll.records", "10")) {
                consumer.subscribe(List.of(topic));
                next(consumer, 10);
                consumer.commitSync(Map.of(partition, new OffsetAndMetadata(committed)));
            }
            try (KafkaConsumer<byte[], byte[]> consumer = fixture.member(group)) {
                consumer.subscribe(List.of(topic));
                Check.equal(String.valueOf(committed), Fixture.values(next(consumer, 1)).get(0), "goes on at");
            }
        }
    }

    private void regex() throws Exception {
        String stem = Fixture.name("e29");
        fixture.admin().createTopics(List.of(new org.apache.kafka.clients.admin.NewTopic(stem + "-a", 1, (short) 1)))
                .all().get();
        try (KafkaConsumer<byte[], byte[]> consumer =
                fixture.member(Fixture.name("g"), "metadata.max.age.ms", "500")) {
            consumer.subscribe(Pattern.compile(stem + ".*"));
            fixture.send(stem + "-a", 0, "old topic");
            Check.equal(List.of("old topic"), Fixture.values(next(consumer, 1)), "values");
            consumer.commitSync();
            fixture.admin().createTopics(List.of(
                    new org.apache.kafka.clients.admin.NewTopic(stem + "-b", 1, (short) 1))).all().get();
            fixture.send(stem + "-b", 0, "new topic");
            Check.equal(List.of("new topic"), Fixture.values(next(consumer, 1)), "values");
        }
    }

    private void assignor(String assignor) throws Exception {
        String topic = fixture.topic(5);
        String group = Fixture.name("assignor");
        String strategy = "org.apache.kafka.clients.consumer." + assignor;
        try (Member first = member(group, topic, "partition.assignment.strategy", strategy)) {
            settled(List.of(first), 5, "[5]");
            try (Member second = member(group, topic, "partition.assignment.strategy", strategy)) {
                settled(List.of(first, second), 5, "[2, 3]");
            }
            settled(List.of(first), 5, "[5]");
        }
    }

    private void metadata() throws Exception {
        String topic = fixture.topic(1);
        TopicPartition partition = new TopicPartition(topic, 0);
        fixture.send(topic, 0, "a", "b");
        OffsetAndMetadata committed = new OffsetAndMetadata(2, Optional.of(0), "a note, ünïcode");
        String group = Fixture.name("g");
        try (KafkaConsumer<byte[], byte[]> consumer = fixture.member(group)) {
            consumer.assign(List.of(partition));
            consumer.commitSync(Map.of(partition, committed));
            Check.equal(committed, consumer.committed(Set.of(partition)).get(partition), "committed");
        }
        Check.equal(committed, fixture.admin().listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get()
                .get(partition), "as the admin client sees it");
    }

    private void longMetadata() throws Throwable {
        String topic = fixture.topic(1);
        TopicPartition partition = new TopicPartition(topic, 0);
        try (KafkaConsumer<byte[], byte[]> consumer = fixture.member(Fixture.name("g"))) {
            consumer.assign(List.of(partition));
            consumer.commitSync(Map.of(partition, new OffsetAndMetadata(0, "m".repeat(4096))));
            Check.fails(OffsetMetadataTooLarge.class, () -> consumer
                    .commitSync(Map.of(partition, new OffsetAndMetadata(0, "m".repeat(4097)))));
        }
    }

    private void commitAsync() throws Exception {
        String topic = fixture.topic(1);
        fixture.send(topic, 0, "a");
        try (KafkaConsumer<byte[], byte[]> consumer = fixture.member(Fixture.name("g"))) {
            consumer.subscribe(List.of(topic));
            next(consumer, 1);
            CompletableFuture<Map<TopicPartition, OffsetAndMetadata>> done = new CompletableFuture<>();
            consumer.commitAsync((offsets, error) -> {
                if (error == null) {
                    done.complete(offsets);
                } else {
                    done.completeExceptionally(error);
                }
            });
            Check.eventually("the call back came", () -> {
                consumer.poll(Duration.ofMillis(50));
                return done.isDone();
            });
            Check.equal(1L, done.get().get(new TopicPartition(topic, 0)).offset(), "committed");
        }
    }

    private void autoCommit() throws Exception {
        String topic = fixture.topic(1);
        fixture.send(topic, 0, "a", "b", "c");
        String group = Fixture.name("g");
        try (KafkaConsumer<byte[], byte[]> consumer = fixture.member(group, "enable.auto.commit", "true")) {
            consumer.subscribe(List.of(topic));
            next(consumer, 3);
        }
        Check.equal(3L, fixture.admin().listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get()
                .get(new TopicPartition(topic, 0)).offset(), "committed");
    }

    private void staticMember() throws Exception {
        String topic = fixture.topic(4);
        String group = Fixture.name("static");
        try (Member first = member(group, topic, "group.instance.id", "one")) {
            settled(List.of(first), 4, "[4]");
            Member second = member(group, topic, "group.instance.id", "two");
            settled(List.of(first, second), 4, "[2, 2]");
            int assignments = first.assignments();
            Set<Integer> owned = second.owned();
            second.close();
            try (Member again = member(group, topic, "group.instance.id", "two")) {
                Check.eventually("it has its partitions again", () -> again.owned().equals(owned));
                Check.equal(assignments, first.assignments(), "assignments of the other member");
            }
        }
        fixture.admin().removeMembersFromConsumerGroup(group, new RemoveMembersFromConsumerGroupOptions(
                List.of(new MemberToRemove("one"), new MemberToRemove("two")))).all().get();
    }

    private void removedMember() throws Throwable {
        String topic = fixture.topic(1);
        fixture.send(topic, 0, "a");
        String group = Fixture.name("g");
        try (KafkaConsumer<byte[], byte[]> consumer = fixture.member(group)) {
            consumer.subscribe(List.of(topic));
            next(consumer, 1);
            fixture.admin().removeMembersFromConsumerGroup(group, new RemoveMembersFromConsumerGroupOptions())
                    .all().get();
            Check.fails(CommitFailedException.class, consumer::commitSync);
        }
    }

    private void shortSession() throws Throwable {
        String topic = fixture.topic(1);
        try (KafkaConsumer<byte[], byte[]> consumer = fixture.member(Fixture.name("g"), "session.timeout.ms", "3000",
                "heartbeat.interval.ms", "1000")) {
            consumer.subscribe(List.of(topic));
            Check.fails(InvalidSessionTimeoutException.class, () -> next(consumer, 1));
        }
    }

    private ConsumerGroupDescription describe(String group) throws Exception {
        return fixture.admin().describeConsumerGroups(List.of(group)).all().get().get(group);
    }

    private void described() throws Exception {
        String topic = fixture.topic(2);
        String group = Fixture.name("described");
        try (Member one = member(group, topic, "client.id", "client-of-the-group")) {
            settled(List.of(one), 2, "[2]");
            Check.eventually("the group is stable", () -> describe(group).groupState() == GroupState.STABLE);
            ConsumerGroupDescription described = describe(group);
            Check.equal("range", described.partitionAssignor(), "assignor");
            Check.equal(1, described.members().size(), "members");
            var member = described.members().iterator().next();
            Check.equal("client-of-the-group", member.clientId(), "client id");
            Check.that(member.consumerId().startsWith("client-of-the-group-"), "member id " + member.consumerId());
            Check.equal("/127.0.0.1", member.host(), "host");
            Check.equal(Set.of(new TopicPartition(topic, 0), new TopicPartition(topic, 1)),
                    member.assignment().topicPartitions(), "assignment");
            Check.that(described.coordinator() != null, "there is a coordinator");
            Check.that(listed(Set.of(GroupState.STABLE)).contains(group), "listed as stable");
            Check.that(!listed(Set.of(GroupState.EMPTY)).contains(group), "not listed as empty");
        }
        Check.eventually("the group is empty", () -> describe(group).groupState() == GroupState.EMPTY);
        Check.that(listed(Set.of(GroupState.EMPTY)).contains(group), "listed as empty");
    }

    private Set<String> listed(Set<GroupState> states) throws Exception {
        Set<String> ids = new TreeSet<>();
        for (GroupListing group : fixture.admin().listGroups(new ListGroupsOptions().inGroupStates(states)).all()
                .get()) {
            ids.add(group.groupId());
        }
        return ids;
    }

    private void adminOffsets() throws Exception {
        String topic = fixture.topic(2);
        TopicPartition zero = new TopicPartition(topic, 0);
        TopicPartition one = new TopicPartition(topic, 1);
        String group = Fixture.name("offsets");
        fixture.admin().alterConsumerGroupOffsets(group,
                Map.of(zero, new OffsetAndMetadata(7), one, new OffsetAndMetadata(9))).all().get();
        Check.equal(7L, offsets(group).get(zero).offset(), "of partition 0");
        Check.equal(9L, offsets(group).get(one).offset(), "of partition 1");
        fixture.admin().deleteConsumerGroupOffsets(group, Set.of(one)).all().get();
        Check.equal(Set.of(zero), offsets(group).keySet(), "left");
        var asked = Map.of(group, new ListConsumerGroupOffsetsSpec().topicPartitions(List.of(one)));
        Check.equal(null, fixture.admin().listConsumerGroupOffsets(asked).partitionsToOffsetAndMetadata(group).get()
                .get(one), "an offset that was never committed");
        fixture.admin().deleteConsumerGroups(List.of(group)).all().get();
        Check.that(!listed(Set.of()).contains(group), "the group is gone");
    }

    private Map<TopicPartition, OffsetAndMetadata> offsets(String group) throws Exception {
        return fixture.admin().listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
    }

    private void deletion() throws Throwable {
        String topic = fixture.topic(1);
        String group = Fixture.name("deletion");
        try (Member member = member(group, topic)) {
            settled(List.of(member), 1, "[1]");
            Check.fails(GroupNotEmptyException.class,
                    () -> fixture.admin().deleteConsumerGroups(List.of(group)).all().get());
        }
        Check.eventually("the group is empty", () -> describe(group).groupState() == GroupState.EMPTY);
        fixture.admin().deleteConsumerGroups(List.of(group)).all().get();
        Check.that(!listed(Set.of()).contains(group), "the group is gone");
    }

    private void unknownGroup() throws Throwable {
        String group = Fixture.name("unknown");
        Check.fails(GroupIdNotFoundException.class, () -> describe(group));
        Check.fails(GroupIdNotFoundException.class,
                () -> fixture.admin().deleteConsumerGroups(List.of(group)).all().get());
        Check.equal(Map.of(), offsets(group), "offsets");
    }

    private void simpleCommit() throws Exception {
        String topic = fixture.topic(1);
        TopicPartition partition = new TopicPartition(topic, 0);
        String group = Fixture.name("simple");
        fixture.send(topic, 0, "a", "b", "c");
        try (KafkaConsumer<byte[], byte[]> consumer = fixture.member(group)) {
            consumer.assign(List.of(partition));
            next(consumer, 3);
            consumer.commitSync(Map.of(partition, new OffsetAndMetadata(1)));
        }
        try (KafkaConsumer<byte[], byte[]> consumer = fixture.member(group)) {
            consumer.assign(List.of(partition));
            Check.equal(List.of("b", "c"), Fixture.values(next(consumer, 2)), "after the commit");
        }
    }
}
