// Asks a running Apache Kafka node what it answers to DescribeConfigs and IncrementalAlterConfigs, and prints the
// answers as the lines of the golden files in server/metadata/golden:
//
//     java -cp 'LIB/*' ConfigGolden.java describe 127.0.0.1:PORT DIR
//     java -cp 'LIB/*' ConfigGolden.java alter 127.0.0.1:PORT DIR
//
// DIR is the node's directory, made by tests/peers/kafka/broker; for `describe` with the `static` lines of the golden
// file as its properties. For `alter` its file `cases` has the changes to try, one a line: type, name, values set
// before, operations; `cut -f2-5` of the golden file gives them. The directory and the ports are written as `/kafka`,
// 9092 and 9093, whatever they are.

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.AlterConfigsOptions;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.DescribeConfigsOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.protocol.Errors;

public final class ConfigGolden {
    private final Admin admin;
    private final String directory;
    private final int port;
    private int cases;

    private ConfigGolden(Admin admin, String directory, int port) {
        this.admin = admin;
        this.directory = directory;
        this.port = port;
    }

    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", arguments[1]);
        int port = Integer.parseInt(arguments[1].split(":")[1]);
        try (Admin admin = Admin.create(properties)) {
            ConfigGolden golden = new ConfigGolden(admin, arguments[2], port);
            if (arguments[0].equals("describe")) golden.describe(); else golden.alter();
        }
    }

    // ---- describe

    private void describe() throws Exception {
        Properties statics = new Properties();
        try (var reader = Files.newBufferedReader(Path.of(directory, "server.properties"))) {
            statics.load(reader);
        }
        new TreeMap<>(statics).forEach((name, value) -> line("static", name.toString(), value.toString()));
        given(ConfigResource.Type.BROKER, "", Map.of("log.retention.ms", "1000000", "log.segment.bytes", "2097152",
            "message.max.bytes", "2000000", "min.insync.replicas", "1", "follower.replication.throttled.rate", "5000"));
        given(ConfigResource.Type.BROKER, "1", Map.of("log.segment.bytes", "3145728",
            "listener.name.plaintext.max.connections", "77", "sasl.jaas.config", "secret",
            "leader.replication.throttled.rate", "4000"));
        Map<String, String> overrides = Map.of("retention.ms", "604800000", "cleanup.policy", "compact,delete",
            "segment.bytes", "4194304", "compression.type", "producer");
        admin.createTopics(List.of(new NewTopic("plain", 1, (short) 1),
            new NewTopic("tuned", 1, (short) 1).configs(overrides))).all().get();
        new TreeMap<>(overrides).forEach((name, value) -> line("given", "TOPIC", "tuned", name, value));
        given(ConfigResource.Type.GROUP, "g", Map.of("consumer.session.timeout.ms", "50000"));
        given(ConfigResource.Type.CLIENT_METRICS, "m", Map.of("interval.ms", "1000", "metrics", "a.,b."));
        Thread.sleep(1000);
        print(ConfigResource.Type.BROKER, "1");
        print(ConfigResource.Type.BROKER, "");
        print(ConfigResource.Type.TOPIC, "plain");
        print(ConfigResource.Type.TOPIC, "tuned");
        print(ConfigResource.Type.GROUP, "g");
        print(ConfigResource.Type.GROUP, "absent");
        print(ConfigResource.Type.CLIENT_METRICS, "m");
        print(ConfigResource.Type.CLIENT_METRICS, "absent");
    }

    private void given(ConfigResource.Type type, String name, Map<String, String> values) throws Exception {
        List<AlterConfigOp> ops = values.entrySet().stream()
            .map(each -> op(AlterConfigOp.OpType.SET, each.getKey(), each.getValue())).collect(Collectors.toList());
        admin.incrementalAlterConfigs(Map.of(new ConfigResource(type, name), ops)).all().get();
        new TreeMap<>(values).forEach((key, value) -> line("given", type.toString(), name, key, value));
    }

    private void print(ConfigResource.Type type, String name) throws Exception {
        for (ConfigEntry entry : entries(type, name)) {
            String synonyms = entry.synonyms().stream()
                .map(each -> each.name() + "=" + shown(each.value()) + "@" + each.source())
                .collect(Collectors.joining("|"));
            line("entry", type.toString(), name, entry.name(), entry.type().toString(), shown(entry.value()),
                entry.source().toString(), entry.isReadOnly() ? "read-only" : "-",
                entry.isSensitive() ? "sensitive" : "-", synonyms);
        }
    }

    /** What DescribeConfigs says; a topic that the node has not heard of yet is asked for again. */
    private List<ConfigEntry> entries(ConfigResource.Type type, String name) throws Exception {
        for (int attempt = 0; ; attempt++) {
            try {
                return described(type, name);
            } catch (ExecutionException failure) {
                if (attempt == 50 || !(failure.getCause() instanceof UnknownTopicOrPartitionException)) throw failure;
                Thread.sleep(20);
            }
        }
    }

    private List<ConfigEntry> described(ConfigResource.Type type, String name) throws Exception {
        ConfigResource resource = new ConfigResource(type, name);
        Collection<ConfigEntry> entries = admin.describeConfigs(List.of(resource),
            new DescribeConfigsOptions().includeSynonyms(true).includeDocumentation(true)).all().get().get(resource)
            .entries();
        List<ConfigEntry> sorted = new ArrayList<>(entries);
        sorted.sort(Comparator.comparing(ConfigEntry::name));
        return sorted;
    }

    private static String shown(String value) {
        return value == null ? "null" : "'" + value + "'";
    }

    // ---- alter

    private void alter() throws Exception {
        for (String text : Files.readAllLines(Path.of(directory, "cases"))) {
            if (text.isBlank() || text.startsWith("#")) continue;
            String[] part = text.split("\t", -1);
            one(ConfigResource.Type.valueOf(part[0]), part[1], part[2], part[3], text);
        }
    }

    private void one(ConfigResource.Type type, String name, String initial, String ops, String text)
        throws Exception {
        Map<String, String> before = new TreeMap<>();
        if (type == ConfigResource.Type.TOPIC) {
            name = "case-" + cases++ + "-" + System.nanoTime();
            admin.createTopics(List.of(new NewTopic(name, 1, (short) 1).configs(configs(initial)))).all().get();
        } else {
            if (isReadable(type, name)) before = overrides(type, name);
            for (var each : configs(initial).entrySet()) {
                apply(type, name, List.of(op(AlterConfigOp.OpType.SET, each.getKey(), each.getValue())));
            }
        }
        String answer = apply(type, name, parsed(ops));
        Map<String, String> after = isReadable(type, name) ? overrides(type, name) : new TreeMap<>();
        after.keySet().removeAll(before.entrySet().stream()
            .filter(each -> each.getValue().equals(after.get(each.getKey()))).map(Map.Entry::getKey).toList());
        line("case", text, answer, after.entrySet().stream().map(each -> each.getKey() + "=" + each.getValue())
            .collect(Collectors.joining("|")));
        if (type == ConfigResource.Type.TOPIC) {
            admin.deleteTopics(List.of(name)).all().get();
            return;
        }
        for (String key : after.keySet()) apply(type, name, List.of(op(AlterConfigOp.OpType.DELETE, key, null)));
        for (var each : before.entrySet()) {
            apply(type, name, List.of(op(AlterConfigOp.OpType.SET, each.getKey(), each.getValue())));
        }
    }

    /** Only the default broker has an empty name. */
    private static boolean isReadable(ConfigResource.Type type, String name) {
        return type == ConfigResource.Type.BROKER || !name.isEmpty();
    }

    private String apply(ConfigResource.Type type, String name, List<AlterConfigOp> ops) throws Exception {
        try {
            admin.incrementalAlterConfigs(Map.of(new ConfigResource(type, name), ops)).all().get();
            return "0\t";
        } catch (ExecutionException failure) {
            Throwable cause = failure.getCause();
            return Errors.forException(cause).code() + "\t" + String.valueOf(cause.getMessage()).replace("\n", "\\n");
        }
    }

    /** The values that were set on the resource itself; waits until the node's image has them. */
    private Map<String, String> overrides(ConfigResource.Type type, String name) throws Exception {
        Thread.sleep(60);
        ConfigEntry.ConfigSource own = switch (type) {
            case TOPIC -> ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG;
            case GROUP -> ConfigEntry.ConfigSource.DYNAMIC_GROUP_CONFIG;
            case CLIENT_METRICS -> ConfigEntry.ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG;
            default -> name.isEmpty() ? ConfigEntry.ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
                : ConfigEntry.ConfigSource.DYNAMIC_BROKER_CONFIG;
        };
        Map<String, String> found = new TreeMap<>();
        for (ConfigEntry entry : entries(type, name)) {
            if (entry.source() == own) found.put(entry.name(), String.valueOf(entry.value()));
        }
        return found;
    }

    private static Map<String, String> configs(String text) {
        Map<String, String> configs = new LinkedHashMap<>();
        for (String part : text.isEmpty() ? new String[0] : text.split("\\|")) {
            configs.put(part.substring(0, part.indexOf('=')), part.substring(part.indexOf('=') + 1));
        }
        return configs;
    }

    private static List<AlterConfigOp> parsed(String text) {
        return Arrays.stream(text.split("\\|")).map(part -> {
            String operation = part.substring(0, part.indexOf(' '));
            String rest = part.substring(part.indexOf(' ') + 1);
            int equals = rest.indexOf('=');
            return op(AlterConfigOp.OpType.valueOf(operation), equals < 0 ? rest : rest.substring(0, equals),
                equals < 0 ? null : rest.substring(equals + 1));
        }).collect(Collectors.toList());
    }

    private static AlterConfigOp op(AlterConfigOp.OpType type, String name, String value) {
        return new AlterConfigOp(new ConfigEntry(name, value), type);
    }

    private void line(String... parts) {
        System.out.println(String.join("\t", parts).replace(directory, "/kafka")
            .replace(":" + port, ":9092").replace(":" + (port + 1), ":9093"));
    }
}
