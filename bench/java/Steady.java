import java.io.BufferedOutputStream;
import java.io.PrintStream;
import java.util.Properties;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * A steady load with acks=all until standard input ends; every answer is a line: partition, when it was sent, when it
 * was answered (both ms since the epoch), and the error or "-". Args: bootstrap topic partitions recordsPerSecond.
 */
public final class Steady {
    public static void main(String[] args) throws Exception {
        String topic = args[1];
        int partitions = Integer.parseInt(args[2]);
        long period = 1_000_000_000L / Integer.parseInt(args[3]);
        Properties properties = new Properties();
        properties.put("bootstrap.servers", args[0]);
        properties.put("acks", "all");
        PrintStream out = new PrintStream(new BufferedOutputStream(System.out, 1 << 16), false);
        boolean[] ended = {false};
        Thread watcher = new Thread(() -> {
            try {
                while (System.in.read() >= 0) {
                    Thread.onSpinWait();
                }
            } catch (java.io.IOException gone) {
                // the end, too
            }
            ended[0] = true;
        });
        watcher.setDaemon(true);
        watcher.start();
        try (KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer())) {
            byte[] value = new byte[100];
            long next = System.nanoTime();
            for (int i = 0; !ended[0]; i++) {
                long wait;
                while ((wait = next - System.nanoTime()) > 0) {
                    LockSupport.parkNanos(wait);
                }
                next += period;
                int partition = i % partitions;
                long sent = System.currentTimeMillis();
                producer.send(new ProducerRecord<>(topic, partition, null, value), (metadata, error) -> {
                    synchronized (out) {
                        out.println(partition + " " + sent + " " + System.currentTimeMillis() + " "
                            + (error == null ? "-" : error.getClass().getSimpleName()));
                        out.flush();
                    }
                });
            }
        }
        out.flush();
    }
}
