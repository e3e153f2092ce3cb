import java.time.Duration;
import java.util.List;
import org.apache.kafka.clients.consumer.KafkaConsumer;

/** The consumer-groups tool. */
final class GroupToolCases {
    private final Fixture fixture;

    private GroupToolCases(Fixture fixture) {
        this.fixture = fixture;
    }

    static void addTo(Suite suite, Fixture fixture) {
        GroupToolCases cases = new GroupToolCases(fixture);
        suite.add("groups", "consumer_groups_lists_and_describes_a_live_group", cases::describe);
        suite.add("groups", "consumer_groups_resets_offsets", cases::reset);
        suite.add("groups", "consumer_groups_deletes_offsets_and_groups", cases::delete);
        suite.add("groups", "consumer_groups_says_that_a_group_does_not_exist", cases::unknown);
    }

    private String groups(String... arguments) throws Exception {
        String[] all = new String[arguments.length + 2];
        all[0] = "--bootstrap-server";
        all[1] = fixture.bootstrap;
        System.arraycopy(arguments, 0, all, 2, arguments.length);
        return Tool.ok("consumer.group.ConsumerGroupCommand", "", all);
    }

    private static String row(String printed, String topic) {
        return printed.lines().filter(line -> line.contains(topic)).findFirst().orElse("")
                .replaceAll("\\s+", " ").strip();
    }

    private void describe() throws Exception {
        String topic = fixture.topic(1);
        String group = Fixture.name("tool-group");
        fixture.send(topic, 0, "a", "b", "c");
        try (Member member = new Member(fixture.member(group, "client.id", "tool-client"), topic)) {
            Check.eventually("it has its partition", () -> member.owned().size() == 1);
            Check.contains(groups("--list"), group);
            Check.eventually("stable", () -> groups("--list", "--state").lines()
                    .anyMatch(line -> line.startsWith(group) && line.contains("Stable")));
            Check.contains(row(groups("--describe", "--group", group), topic), "tool-client");
            Check.contains(groups("--describe", "--group", group, "--members", "--verbose"), topic);
            Check.contains(groups("--describe", "--group", group, "--state"), "range");
        }
    }

    private String group(String topic, int read) throws Exception {
        String group = Fixture.name("tool-group");
        try (KafkaConsumer<byte[], byte[]> consumer = fixture.member(group)) {
            consumer.subscribe(List.of(topic));
            int count = 0;
            while (count < read) {
                count += consumer.poll(Duration.ofSeconds(1)).count();
            }
            consumer.commitSync();
        }
        Check.eventually("the group is empty", () -> groups("--describe", "--group", group, "--state")
                .contains("Empty"));
        return group;
    }

    private void reset() throws Exception {
        String topic = fixture.topic(1);
        fixture.send(topic, 0, "a", "b", "c");
        String group = group(topic, 3);
        Check.contains(row(groups("--describe", "--group", group), topic), topic + " 0 3 3 0");
        groups("--reset-offsets", "--group", group, "--topic", topic, "--to-earliest", "--dry-run");
        Check.contains(row(groups("--describe", "--group", group), topic), topic + " 0 3 3 0");
        groups("--reset-offsets", "--group", group, "--topic", topic, "--to-earliest", "--execute");
        Check.contains(row(groups("--describe", "--group", group), topic), topic + " 0 0 3 3");
        groups("--reset-offsets", "--group", group, "--topic", topic + ":0", "--shift-by", "2", "--execute");
        Check.contains(row(groups("--describe", "--group", group), topic), topic + " 0 2 3 1");
        groups("--reset-offsets", "--group", group, "--topic", topic, "--to-datetime", "2000-01-01T00:00:00.000",
                "--execute");
        Check.contains(row(groups("--describe", "--group", group), topic), topic + " 0 0 3 3");
    }

    private void delete() throws Exception {
        String topic = fixture.topic(1);
        fixture.send(topic, 0, "a");
        String group = group(topic, 1);
        Check.contains(groups("--delete-offsets", "--group", group, "--topic", topic), "Successful");
        Check.equal("", row(groups("--describe", "--group", group), topic), "rows left");
        String other = group(topic, 1);
        Check.contains(groups("--delete", "--group", other), "successful");
        Check.that(!groups("--list").contains(other), "the group is gone");
    }

    private void unknown() throws Exception {
        String group = Fixture.name("nobody");
        Tool.Result result = Tool.run("consumer.group.ConsumerGroupCommand", "", "--bootstrap-server",
                fixture.bootstrap, "--describe", "--group", group);
        Check.contains(result.output() + result.errors(), group);
        Check.contains(result.output() + result.errors(), "not found");
    }
}
