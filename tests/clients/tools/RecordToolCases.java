import java.util.List;

/** Tools that write and read records. */
final class RecordToolCases {
    private static final String CONSUMER = "consumer.ConsoleConsumer";

    private final Fixture fixture;

    private RecordToolCases(Fixture fixture) {
        this.fixture = fixture;
    }

    static void addTo(Suite suite, Fixture fixture) {
        RecordToolCases cases = new RecordToolCases(fixture);
        suite.add("core", "console_producer_and_partition_consumer_pass_lines_on", cases::plain);
        suite.add("core", "get_offsets_tells_ends_starts_and_times", cases::getOffsets);
        suite.add("core", "producer_perf_test_runs", cases::producerPerformance);
        suite.add("groups", "console_consumer_reads_keys_and_headers_from_the_beginning", cases::keysAndHeaders);
        suite.add("groups", "console_consumer_goes_on_in_its_group", cases::inGroup);
        suite.add("groups", "console_scripts_pass_lines_on", cases::scripts);
        suite.add("groups", "consumer_perf_test_runs", cases::consumerPerformance);
    }

    private void produce(String topic, String lines, String... more) throws Exception {
        Tool.ok("ConsoleProducer", lines, with(more, "--topic", topic));
    }

    private String[] with(String[] more, String... arguments) {
        String[] all = new String[2 + arguments.length + more.length];
        all[0] = "--bootstrap-server";
        all[1] = fixture.bootstrap;
        System.arraycopy(arguments, 0, all, 2, arguments.length);
        System.arraycopy(more, 0, all, 2 + arguments.length, more.length);
        return all;
    }

    private List<String> consume(String topic, int count, String... more) throws Exception {
        Tool.Result result = Tool.run(CONSUMER, "", with(more, "--topic", topic, "--max-messages",
                String.valueOf(count), "--timeout-ms", "60000"));
        Check.equal(0, result.code(), "exit code, with " + result.output() + result.errors());
        return result.lines();
    }

    private void plain() throws Exception {
        String topic = fixture.topic(1);
        produce(topic, "hello\nworld\n");
        Check.equal(List.of("hello", "world"), consume(topic, 2, "--partition", "0", "--offset", "earliest"), "lines");
        Check.equal(List.of("world"), consume(topic, 1, "--partition", "0", "--offset", "1"), "from offset 1");
    }

    private void keysAndHeaders() throws Exception {
        String topic = fixture.topic(1);
        produce(topic, "a:1,b:2\tk1\tv1\nc:3\tk2\tv2\n", "--reader-property", "parse.key=true", "--reader-property",
                "parse.headers=true");
        Check.equal(List.of("a:1,b:2\tk1\tv1", "c:3\tk2\tv2"), consume(topic, 2, "--from-beginning",
                "--formatter-property", "print.key=true", "--formatter-property", "print.headers=true"), "lines");
    }

    private void inGroup() throws Exception {
        String topic = fixture.topic(1);
        String group = Fixture.name("console");
        produce(topic, "1\n2\n3\n");
        Check.equal(List.of("1", "2", "3"), consume(topic, 3, "--from-beginning", "--group", group), "lines");
        produce(topic, "4\n");
        Check.equal(List.of("4"), consume(topic, 1, "--group", group), "lines");
    }

    private void scripts() throws Exception {
        String topic = fixture.topic(1);
        Tool.script("console-producer", "by script\n", with(new String[0], "--topic", topic));
        Check.equal("by script\n", Tool.script("console-consumer", "", with(new String[0], "--topic", topic,
                "--from-beginning", "--max-messages", "1", "--timeout-ms", "60000")), "lines");
    }

    private String offsets(String topic, String time) throws Exception {
        return Tool.ok("GetOffsetShell", "", with(new String[0], "--topic", topic, "--time", time)).strip();
    }

    private void getOffsets() throws Exception {
        String topic = fixture.topic(1);
        fixture.send(topic, 0, "a", "b");
        Check.equal(topic + ":0:2", offsets(topic, "latest"), "latest");
        Check.equal(topic + ":0:0", offsets(topic, "earliest"), "earliest");
        Check.equal(topic + ":0:1", offsets(topic, "max-timestamp"), "of the largest timestamp");
        Check.equal(topic + ":0:0", offsets(topic, "1"), "at 1 ms");
        Check.equal(topic + ":0:2", Tool.ok("GetOffsetShell", "", with(new String[0], "--topic-partitions",
                topic + ":0")).strip(), "by partition");
    }

    private void producerPerformance() throws Exception {
        String topic = fixture.topic(3);
        String printed = Tool.ok("ProducerPerformance", "", "--bootstrap-server", fixture.bootstrap, "--topic", topic,
                "--num-records", "20000", "--throughput", "-1", "--record-size", "100", "--command-property", "acks=all");
        Check.contains(printed, "20000 records sent");
        Check.equal(20_000, fixture.readAll(topic).size(), "records");
    }

    private void consumerPerformance() throws Exception {
        String topic = fixture.topic(1);
        Tool.ok("ProducerPerformance", "", "--bootstrap-server", fixture.bootstrap, "--topic", topic, "--num-records",
                "5000", "--throughput", "-1", "--record-size", "100");
        List<String> lines = Tool.ok("ConsumerPerformance", "", "--bootstrap-server", fixture.bootstrap, "--topic", topic,
                "--num-records", "5000", "--timeout", "60000", "--hide-header").lines().toList();
        String last = lines.get(lines.size() - 1);
        Check.equal("5000", last.split(",")[4].strip(), "records read, in " + last);
    }
}
