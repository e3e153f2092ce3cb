import java.time.Duration;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;

/** A group member that polls in a thread of its own until it is closed. */
final class Member implements AutoCloseable {
    final KafkaConsumer<byte[], byte[]> consumer;
    final ConcurrentLinkedQueue<String> values = new ConcurrentLinkedQueue<>();
    private final Set<Integer> owned = new HashSet<>();
    private int assignments;
    private volatile Throwable failure;
    private volatile boolean running = true;
    private final Thread thread;

    Member(KafkaConsumer<byte[], byte[]> consumer, String topic) {
        this.consumer = consumer;
        consumer.subscribe(List.of(topic), new Ownership());
        thread = new Thread(this::run, "member");
        thread.setDaemon(true);
        thread.start();
    }

    private void run() {
        try {
            while (running) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(500))) {
                    values.add(Fixture.text(record.value()));
                }
            }
        } catch (WakeupException woken) {
            // Only close() wakes it.
        } catch (Throwable thrown) {
            failure = thrown;
        } finally {
            consumer.close();
        }
    }

    /** The partitions that it owns now, or an error if its loop has ended with one. */
    Set<Integer> owned() {
        if (failure != null) {
            throw new AssertionError("the member failed", failure);
        }
        synchronized (owned) {
            return new TreeSet<>(owned);
        }
    }

    /** How often it was told of an assignment. */
    int assignments() {
        synchronized (owned) {
            return assignments;
        }
    }

    @Override
    public void close() throws Exception {
        running = false;
        consumer.wakeup();
        thread.join();
    }

    private final class Ownership implements ConsumerRebalanceListener {
        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            synchronized (owned) {
                partitions.forEach(partition -> owned.remove(partition.partition()));
            }
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            synchronized (owned) {
                partitions.forEach(partition -> owned.add(partition.partition()));
                assignments++;
            }
        }

        @Override
        public void onPartitionsLost(Collection<TopicPartition> partitions) {
            onPartitionsRevoked(partitions);
        }
    }
}
