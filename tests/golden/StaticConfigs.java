// Says of each line of the standard input whether Apache Kafka would start with it: `key=value|key=value…` on top of a
// combined node's properties, a key without `=` taken away. Prints the line, a tab, and `ok` or the first words of the
// error:
//
//     java -cp 'LIB/*' StaticConfigs.java < CASES
//
// `cut -f1` of server/metadata/golden/static_configs.txt gives the cases.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Properties;
import kafka.server.KafkaConfig;

public final class StaticConfigs {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            Properties properties = new Properties();
            properties.put("process.roles", "broker,controller");
            properties.put("node.id", "1");
            properties.put("controller.listener.names", "CONTROLLER");
            properties.put("listeners", "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093");
            properties.put("controller.quorum.bootstrap.servers", "127.0.0.1:9093");
            for (String part : line.split("\\|")) {
                int equals = part.indexOf('=');
                if (equals < 0) properties.remove(part);
                else properties.put(part.substring(0, equals), part.substring(equals + 1));
            }
            System.out.println(line + "\t" + verdict(properties));
        }
    }

    private static String verdict(Properties properties) {
        try {
            KafkaConfig.fromProps(properties, false);
            return "ok";
        } catch (Throwable error) {
            String message = String.valueOf(error.getMessage()).replace("\n", " ");
            return message.substring(0, Math.min(200, message.length()));
        }
    }
}
