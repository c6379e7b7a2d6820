package ottla;

import com.fasterxml.jackson.databind.JsonNode;
import java.security.MessageDigest;
import java.time.Duration;
import java.util.HexFormat;
import java.util.Map;
import java.util.Random;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/** Many records at once, compared by a hash over all values in offset order instead of being sent through the line protocol. */
final class Loads {
    private Loads() {}

    /** {"topic", "partition", "count", "size", "seed"}: produces and gives the hash of the values. */
    static Object generate(JsonNode request) throws Exception {
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        Random random = new Random(request.path("seed").asLong());
        long[] failed = {0};
        try (KafkaProducer<byte[], byte[]> producer = ClientServer.producer(request)) {
            for (int at = 0; at < request.get("count").asInt(); at++) {
                byte[] value = new byte[request.get("size").asInt()];
                random.nextBytes(value);
                digest.update(value);
                producer.send(
                    new ProducerRecord<>(request.get("topic").asText(), request.get("partition").asInt(), null, value),
                    (metadata, exception) -> { if (exception != null) failed[0]++; });
            }
        }
        return Map.of("hash", HexFormat.of().formatHex(digest.digest()), "failed", failed[0]);
    }

    /** {"positions": [[topic, partition, offset]], "count"}: consumes and gives the hash of the values, and whether offsets were dense. */
    static Object digest(JsonNode request) throws Exception {
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        int count = request.get("count").asInt();
        long deadline = System.currentTimeMillis() + request.path("timeout_ms").asLong(60_000);
        int seen = 0;
        boolean dense = true;
        try (KafkaConsumer<byte[], byte[]> consumer = Consumers.consumer(request)) {
            Consumers.assign(consumer, request.get("positions"));
            long next = request.get("positions").get(0).path(2).asLong(0);
            while (seen < count && System.currentTimeMillis() < deadline) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) {
                    if (seen == count) break;
                    dense &= record.offset() == next++;
                    digest.update(record.value());
                    seen++;
                }
            }
        }
        return Map.of("hash", HexFormat.of().formatHex(digest.digest()), "count", seen, "dense", dense);
    }
}
