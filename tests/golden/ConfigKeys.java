// Prints the facts of every configuration key of Apache Kafka as tab-separated lines, from the classes on the class
// path:
//
//     scope  name  type  default  validator  importance  update mode  internal  synonyms
//
// `-` stands for "none", `(required)` for a key without a default. `cargo xtask config-keys` compares the lines with
// our own table.

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.server.config.ConfigSynonym;
import org.apache.kafka.server.config.DynamicBrokerConfig;
import org.apache.kafka.server.config.DynamicConfig;
import org.apache.kafka.server.config.QuotaConfig;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;
import org.apache.kafka.server.metrics.ClientMetricsConfigs;
import org.apache.kafka.storage.internals.log.LogConfig;

public final class ConfigKeys {
    public static void main(String[] arguments) {
        Map<String, ConfigDef.ConfigKey> broker = new TreeMap<>(AbstractKafkaConfig.CONFIG_DEF.configKeys());
        DynamicConfig.Broker.configKeys().forEach(broker::putIfAbsent);
        Map<String, String> modes = DynamicBrokerConfig.dynamicConfigUpdateModes();
        broker.forEach((name, key) -> {
            boolean quotaOnly = !AbstractKafkaConfig.CONFIG_DEF.configKeys().containsKey(name);
            String mode = modes.getOrDefault(name, quotaOnly ? "cluster-wide" : "read-only");
            print(quotaOnly ? "broker-dynamic" : "broker", key, mode, brokerSynonyms(name));
        });
        new TreeMap<>(LogConfig.configKeys()).forEach((name, key) -> print("topic", key, "-", topicSynonyms(name)));
        new TreeMap<>(GroupConfig.CONFIG_DEF.configKeys()).forEach((name, key) -> print("group", key, "-",
            GroupConfig.ALL_GROUP_CONFIG_SYNONYMS.getOrDefault(name, Optional.empty()).orElse("-")));
        new TreeMap<>(ClientMetricsConfigs.configDef().configKeys())
            .forEach((name, key) -> print("client-metrics", key, "-", "-"));
        new TreeMap<>(QuotaConfig.userAndClientQuotaConfigs().configKeys())
            .forEach((name, key) -> print("quota", key, "-", "-"));
        new TreeMap<>(QuotaConfig.ipConfigs().configKeys()).forEach((name, key) -> print("ip", key, "-", "-"));
    }

    private static void print(String scope, ConfigDef.ConfigKey key, String mode, String synonyms) {
        String value = key.hasDefault() ? ConfigDef.convertToString(key.defaultValue, key.type) : "(required)";
        System.out.println(String.join("\t", scope, key.name, key.type.toString().toLowerCase(),
            value == null ? "-" : "=" + escape(value), key.validator == null ? "-" : escape(key.validator.toString()),
            key.importance.toString().toLowerCase(), mode, key.internalConfig ? "internal" : "-", synonyms));
    }

    private static String escape(String text) {
        return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n");
    }

    private static String brokerSynonyms(String name) {
        List<String> names = DynamicBrokerConfig.brokerConfigSynonyms(name, true);
        return names.size() == 1 ? "-" : String.join(",", names);
    }

    private static String topicSynonyms(String name) {
        List<ConfigSynonym> synonyms = ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS.get(name);
        if (synonyms == null) return "-";
        return synonyms.stream().map(ConfigKeys::withFactor).collect(Collectors.joining(","));
    }

    /** A synonym in another unit is written with the factor that its values are multiplied by. */
    private static String withFactor(ConfigSynonym synonym) {
        String one = synonym.converter().apply("1");
        return "1".equals(one) ? synonym.name() : synonym.name() + "*" + one;
    }
}
