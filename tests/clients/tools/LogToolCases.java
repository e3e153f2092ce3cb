import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/** What lies on disk, as Kafka's dump-log reads it. */
final class LogToolCases {
    private static final String FIRST = "00000000000000000000";

    private final Fixture fixture;
    private final Path logs;

    private LogToolCases(Fixture fixture, Path logs) {
        this.fixture = fixture;
        this.logs = logs;
    }

    static void addTo(Suite suite, Fixture fixture) {
        LogToolCases cases = new LogToolCases(fixture, suite.logDirectory);
        suite.add("core", "e9_hello_world_on_disk", cases::helloWorld);
        suite.add("core", "e10_index_is_sparse_and_relative", cases::sparseIndex);
        suite.add("core", "dump_log_finds_every_batch_valid", cases::everyCodec);
        suite.add("core", "dump_log_checks_rolled_segments_and_their_indexes", cases::rolledSegments);
        suite.add("core", "dump_log_decodes_cluster_metadata", cases::clusterMetadata);
        suite.add("core", "directories_hold_kafkas_files", cases::files);
        suite.add("core", "partition_is_one_folder_with_offsets_of_its_own", cases::onePartition);
        suite.add("core", "what_was_written_is_not_written_again", cases::appendOnly);
        suite.add("core", "segment_ends_by_the_times_of_its_records", cases::rolledByTime);
        suite.add("groups", "dump_log_decodes_committed_offsets", cases::committedOffsets);
    }

    private Path partition(String topic, int number) {
        return logs.resolve(topic + "-" + number);
    }

    private static String dump(Path file, String... more) throws Exception {
        String[] arguments = new String[more.length + 2];
        System.arraycopy(more, 0, arguments, 0, more.length);
        arguments[more.length] = "--files";
        arguments[more.length + 1] = file.toString();
        return Tool.ok("DumpLogSegments", "", arguments);
    }

    /** Dumps a segment; every batch in it must be valid. */
    private static String dumpLog(Path file, String... more) throws Exception {
        String printed = dump(file, more);
        List<String> batches = printed.lines().filter(line -> line.startsWith("baseOffset:")).toList();
        Check.that(!batches.isEmpty(), "there are batches in " + file);
        for (String batch : batches) {
            Check.contains(batch, "isvalid: true");
        }
        return printed;
    }

    private static List<Path> files(Path folder, String ending) throws IOException {
        try (Stream<Path> files = Files.list(folder)) {
            return files.filter(file -> file.toString().endsWith(ending)).sorted().collect(Collectors.toList());
        }
    }

    private void helloWorld() throws Exception {
        String topic = fixture.topic(1);
        Tool.ok("ConsoleProducer", "hello world\n", "--bootstrap-server", fixture.bootstrap, "--topic", topic);
        Path folder = partition(topic, 0);
        for (String ending : List.of(".index", ".log", ".timeindex")) {
            Check.that(Files.exists(folder.resolve(FIRST + ending)), FIRST + ending + " exists");
        }
        Path log = folder.resolve(FIRST + ".log");
        Check.equal(79L, Files.size(log), "size of the log");
        String printed = Tool.script("dump-log", "", "--print-data-log", "--files", log.toString());
        Check.contains(printed, "baseOffset: 0 lastOffset: 0 count: 1 ");
        Check.contains(printed, "magic: 2 compresscodec: none ");
        Check.contains(printed, "isvalid: true");
        Check.contains(printed, "keySize: -1 valueSize: 11 ");
        Check.contains(printed, "payload: hello world");
        dump(folder.resolve(FIRST + ".index"), "--verify-index-only");
    }

    /** Batches of one record; an entry for a batch once 4096 bytes have been written since the last entry. */
    private void sparseIndex() throws Exception {
        String topic = fixture.topic(1);
        String[] values = new String[400];
        java.util.Arrays.fill(values, "v".repeat(137));
        fixture.send(topic, 0, values);
        Path folder = partition(topic, 0);
        long batch = Files.size(folder.resolve(FIRST + ".log")) / 400;
        Pattern entry = Pattern.compile("offset: (\\d+) position: (\\d+)");
        long lastPosition = 0;
        int entries = 0;
        Matcher found = entry.matcher(dump(folder.resolve(FIRST + ".index")));
        while (found.find()) {
            long position = Long.parseLong(found.group(2));
            Check.equal(Long.parseLong(found.group(1)) * batch, position, "position of offset " + found.group(1));
            Check.that(entries == 0 || position - lastPosition > 4096, "more than 4096 bytes between entries");
            Check.that(position - lastPosition <= 4096 + 2 * batch, "not much more between entries");
            lastPosition = position;
            entries++;
        }
        Check.that(entries >= 10, "entries: " + entries);
        dump(folder.resolve(FIRST + ".index"), "--index-sanity-check");
        dump(folder.resolve(FIRST + ".timeindex"));
    }

    private void everyCodec() throws Exception {
        String topic = fixture.topic(1);
        for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            try (KafkaProducer<byte[], byte[]> producer = fixture.producer("compression.type", codec, "linger.ms", "50")) {
                for (int number = 0; number < 50; number++) {
                    producer.send(Fixture.record(topic, 0, "k" + number, codec + " " + "x".repeat(number)));
                }
            }
        }
        String printed = dumpLog(partition(topic, 0).resolve(FIRST + ".log"), "--print-data-log", "--deep-iteration");
        for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            Check.contains(printed, "compresscodec: " + codec);
        }
        Check.equal(250L, printed.lines().filter(line -> line.startsWith("| offset:")).count(), "records");
    }

    private void rolledSegments() throws Exception {
        String topic = fixture.topic(1, "segment.bytes", String.valueOf(1 << 20));
        String[] values = new String[40];
        java.util.Arrays.fill(values, "v".repeat(100_000));
        fixture.send(topic, 0, values);
        Path folder = partition(topic, 0);
        List<Path> segments = files(folder, ".log");
        Check.that(segments.size() >= 4, "segments: " + segments.size());
        long expected = 0;
        for (Path segment : segments) {
            String printed = dumpLog(segment);
            List<String> batches = printed.lines().filter(line -> line.startsWith("baseOffset:")).toList();
            Check.equal(String.format("%020d.log", expected), segment.getFileName().toString(), "name of a segment");
            Check.that(Files.size(segment) <= 1 << 20, "a segment stays within segment.bytes: " + Files.size(segment));
            expected += batches.size();
            String stem = segment.toString().substring(0, segment.toString().length() - ".log".length());
            Check.that(!dump(Path.of(stem + ".index"), "--verify-index-only").contains("Mismatches"), "index " + stem);
            Check.that(!dump(Path.of(stem + ".timeindex"), "--verify-index-only").contains("ound timestamp mismatch"),
                    "time index " + stem);
        }
        Check.equal(40L, expected, "records");
        for (Path snapshot : files(folder, ".snapshot")) {
            Check.contains(dump(snapshot), "producerId");
        }
    }

    private void clusterMetadata() throws Exception {
        String topic = fixture.topic(2);
        Path folder = logs.resolve("__cluster_metadata-0");
        StringBuilder printed = new StringBuilder();
        for (Path segment : files(folder, ".log")) {
            printed.append(dumpLog(segment, "--cluster-metadata-decoder"));
        }
        for (String part : List.of("LeaderChange", "\"type\":\"REGISTER_BROKER_RECORD\"",
                "\"type\":\"FEATURE_LEVEL_RECORD\"", "\"type\":\"TOPIC_RECORD\"", "\"name\":\"" + topic + "\"",
                "\"type\":\"PARTITION_RECORD\"")) {
            Check.contains(printed.toString(), part);
        }
        for (Path snapshot : files(folder, ".checkpoint")) {
            Check.contains(dump(snapshot, "--cluster-metadata-decoder"), "SnapshotHeader");
        }
        Check.that(Files.readString(folder.resolve("quorum-state")).contains("\"leaderEpoch\""), "quorum-state");
    }

    private void files() throws Exception {
        String topic = fixture.topic(1);
        fixture.send(topic, 0, "a");
        Set<String> names = new TreeSet<>();
        try (Stream<Path> found = Files.list(partition(topic, 0))) {
            found.forEach(file -> names.add(file.getFileName().toString()));
        }
        Check.that(names.containsAll(Set.of(FIRST + ".log", FIRST + ".index", FIRST + ".timeindex",
                "leader-epoch-checkpoint", "partition.metadata")), "files of a partition: " + names);
        String metadata = Files.readString(partition(topic, 0).resolve("partition.metadata"));
        String id = fixture.admin().describeTopics(List.of(topic)).allTopicNames().get().get(topic).topicId().toString();
        Check.equal(List.of("version: 0", "topic_id: " + id), metadata.lines().toList(), "partition.metadata");
        Check.equal(List.of("0", "1", "0 0"), Files.readAllLines(partition(topic, 0).resolve("leader-epoch-checkpoint")),
                "leader-epoch-checkpoint");
        List<String> properties = Files.readAllLines(logs.resolve("meta.properties"), StandardCharsets.UTF_8);
        for (String key : List.of("version=1", "cluster.id=", "node.id=", "directory.id=")) {
            Check.that(properties.stream().anyMatch(line -> line.startsWith(key)), key + " in meta.properties");
        }
    }

    /** The offsets that a log holds, as the dump tool tells them. */
    private List<Long> offsetsIn(Path log) throws Exception {
        Pattern offset = Pattern.compile("^\\| offset: (\\d+) ", Pattern.MULTILINE);
        return offset.matcher(dumpLog(log, "--deep-iteration")).results().map(found -> Long.valueOf(found.group(1)))
                .toList();
    }

    private void onePartition() throws Exception {
        String topic = fixture.topic(3);
        for (int number = 0; number < 3; number++) {
            String[] values = new String[number + 1];
            java.util.Arrays.fill(values, "v");
            fixture.send(topic, number, values);
        }
        Set<String> folders = new TreeSet<>();
        try (Stream<Path> found = Files.list(logs)) {
            found.map(folder -> folder.getFileName().toString()).filter(name -> name.startsWith(topic))
                    .forEach(folders::add);
        }
        Check.equal(Set.of(topic + "-0", topic + "-1", topic + "-2"), folders, "folders");
        for (int number = 0; number < 3; number++) {
            List<Path> segments = files(partition(topic, number), ".log");
            Check.equal(1, segments.size(), "segments of partition " + number);
            List<Long> expected = Stream.iterate(0L, offset -> offset + 1).limit(number + 1).toList();
            Check.equal(expected, offsetsIn(segments.get(0)), "offsets in partition " + number);
        }
    }

    /** Over several segments: what a file held stays its beginning, and a reader sees one log. */
    private void appendOnly() throws Exception {
        String topic = fixture.topic(1, "segment.bytes", String.valueOf(1 << 20));
        Path folder = partition(topic, 0);
        List<byte[]> before = List.of();
        String[] values = new String[13];
        java.util.Arrays.fill(values, "v".repeat(100_000));
        for (int round = 0; round < 3; round++) {
            fixture.send(topic, 0, values);
            List<byte[]> now = new java.util.ArrayList<>();
            for (Path segment : files(folder, ".log")) {
                now.add(Files.readAllBytes(segment));
            }
            Check.that(now.size() > before.size(), "a segment more in round " + round + ": " + now.size());
            for (int at = 0; at < before.size(); at++) {
                byte[] held = before.get(at);
                Check.that(java.util.Arrays.equals(held, java.util.Arrays.copyOf(now.get(at), held.length)),
                        "segment " + at + " begins as it was in round " + round);
                Check.that(at + 1 == before.size() || now.get(at).length == held.length,
                        "segment " + at + " is closed in round " + round);
            }
            before = now;
        }
        List<Long> read = fixture.readAll(topic).stream().map(record -> record.offset()).toList();
        Check.equal(Stream.iterate(0L, offset -> offset + 1).limit(39).toList(), read, "offsets over all segments");
    }

    private void rolledByTime() throws Exception {
        String topic = fixture.topic(1, "segment.ms", "3600000", "segment.jitter.ms", "0");
        long first = System.currentTimeMillis() - 10 * 3_600_000L;
        try (KafkaProducer<byte[], byte[]> producer = fixture.producer("linger.ms", "0")) {
            for (long minutes : new long[] {0, 59, 61, 120, 122}) {
                producer.send(new ProducerRecord<>(topic, 0, first + minutes * 60_000, null, Fixture.bytes("v"))).get();
            }
        }
        List<String> names = files(partition(topic, 0), ".log").stream().map(file -> file.getFileName().toString())
                .toList();
        Check.equal(List.of(FIRST + ".log", String.format("%020d.log", 2), String.format("%020d.log", 4)), names,
                "segments");
    }

    private void committedOffsets() throws Exception {
        String topic = fixture.topic(1);
        String group = Fixture.name("dumped");
        fixture.send(topic, 0, "a");
        try (KafkaConsumer<byte[], byte[]> consumer = fixture.member(group)) {
            consumer.subscribe(List.of(topic));
            while (consumer.poll(java.time.Duration.ofSeconds(1)).isEmpty()) {
                continue;
            }
            consumer.commitSync();
        }
        StringBuilder printed = new StringBuilder();
        try (Stream<Path> folders = Files.list(logs)) {
            for (Path folder : folders.filter(one -> one.getFileName().toString().startsWith("__consumer_offsets-"))
                    .toList()) {
                for (Path segment : files(folder, ".log")) {
                    if (Files.size(segment) > 0) {
                        printed.append(dumpLog(segment, "--offsets-decoder"));
                    }
                }
            }
        }
        List<String> lines = printed.toString().lines().filter(line -> line.contains(group)).toList();
        Check.that(lines.stream().anyMatch(line -> line.contains("\"topic\":\"" + topic + "\"")
                && line.contains("\"offset\":1")), "the committed offset in " + lines);
        Check.that(lines.stream().anyMatch(line -> line.contains("\"protocolType\":\"consumer\"")),
                "the group's metadata in " + lines);
    }
}
