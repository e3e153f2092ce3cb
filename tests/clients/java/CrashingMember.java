import java.time.Duration;
import java.util.List;
import org.apache.kafka.clients.consumer.KafkaConsumer;

/** A process that joins a group and never leaves it: its parent kills it. Prints its partitions when it has some. */
final class CrashingMember {
    private CrashingMember() {}

    public static void main(String[] arguments) {
        Fixture fixture = new Fixture(arguments[0]);
        KafkaConsumer<byte[], byte[]> consumer =
                fixture.member(arguments[1], "session.timeout.ms", "6000", "heartbeat.interval.ms", "500");
        consumer.subscribe(List.of(arguments[2]));
        boolean told = false;
        while (true) {
            consumer.poll(Duration.ofMillis(200));
            if (!told && !consumer.assignment().isEmpty()) {
                System.out.println(consumer.assignment());
                System.out.flush();
                told = true;
            }
        }
    }
}
