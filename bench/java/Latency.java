import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** End-to-end latency at a fixed rate: args bootstrap topic recordsPerSecond warmUpSeconds seconds recordBytes. */
public final class Latency {
    public static void main(String[] args) throws Exception {
        String bootstrap = args[0];
        String topic = args[1];
        int rate = Integer.parseInt(args[2]);
        int warmUp = rate * Integer.parseInt(args[3]);
        int total = warmUp + rate * Integer.parseInt(args[4]);
        int size = Integer.parseInt(args[5]);
        TopicPartition partition = new TopicPartition(topic, 0);
        long[] sent = new long[total];
        long[] latency = new long[total];

        Properties consumerProperties = new Properties();
        consumerProperties.put("bootstrap.servers", bootstrap);
        consumerProperties.put("fetch.max.wait.ms", "500");
        Properties producerProperties = new Properties();
        producerProperties.put("bootstrap.servers", bootstrap);
        producerProperties.put("acks", "all");
        producerProperties.put("linger.ms", "0");

        KafkaConsumer<byte[], byte[]> consumer =
            new KafkaConsumer<>(consumerProperties, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        KafkaProducer<byte[], byte[]> producer =
            new KafkaProducer<>(producerProperties, new ByteArraySerializer(), new ByteArraySerializer());
        consumer.assign(List.of(partition));
        consumer.seekToEnd(List.of(partition));
        long start = consumer.position(partition);

        Thread sender = new Thread(() -> {
            long period = 1_000_000_000L / rate;
            long next = System.nanoTime();
            byte[] value = new byte[size];
            for (int i = 0; i < total; i++) {
                long wait;
                while ((wait = next - System.nanoTime()) > 0) {
                    LockSupport.parkNanos(wait);
                }
                sent[i] = System.nanoTime();
                producer.send(new ProducerRecord<>(topic, 0, null, value));
                next += period;
            }
            producer.flush();
        });
        sender.start();
        int received = 0;
        long deadline = System.nanoTime() + 1_000_000_000L * (60 + total / rate);
        while (received < total && System.nanoTime() < deadline) {
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(1000))) {
                int i = (int) (record.offset() - start);
                latency[i] = System.nanoTime() - sent[i];
                received++;
            }
        }
        sender.join();
        producer.close();
        consumer.close();
        if (received < total) {
            throw new IllegalStateException("received " + received + " of " + total);
        }
        long[] measured = Arrays.copyOfRange(latency, warmUp, total);
        Arrays.sort(measured);
        System.out.printf("{\"p50_us\": %d, \"p99_us\": %d, \"max_us\": %d}%n",
            measured[measured.length / 2] / 1000, measured[(int) (measured.length * 0.99)] / 1000,
            measured[measured.length - 1] / 1000);
    }
}
