package ottla;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Consumers with an assignment given by hand: no group is involved. */
final class Consumers {
    private Consumers() {}

    static KafkaConsumer<byte[], byte[]> consumer(JsonNode request) {
        Map<String, Object> settings = ClientServer.settings(request);
        settings.putIfAbsent("auto.offset.reset", "earliest");
        settings.putIfAbsent("enable.auto.commit", "false");
        return new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    /** {"positions": [[topic, partition, offset or null for the beginning]], "count", "timeout_ms"}: up to count records. */
    static Object consume(JsonNode request) throws Exception {
        int count = request.get("count").asInt();
        long deadline = System.currentTimeMillis() + request.path("timeout_ms").asLong(30_000);
        ArrayNode records = Lines.JSON.createArrayNode();
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(request)) {
            assign(consumer, request.get("positions"));
            while (records.size() < count && System.currentTimeMillis() < deadline) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) {
                    if (records.size() < count) records.add(shown(record));
                }
            }
        }
        return records;
    }

    /**
     * {"topic", "config"}: everything up to the end as this isolation level sees it, [partition, offset, key, value] each, as texts.
     * Ends when the positions have passed the ends, so that control records and aborted ones need no waiting.
     */
    static Object drain(JsonNode request) {
        ArrayNode answer = Lines.JSON.createArrayNode();
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(request)) {
            List<TopicPartition> partitions = new ArrayList<>();
            consumer.partitionsFor(request.get("topic").asText())
                .forEach(each -> partitions.add(new TopicPartition(each.topic(), each.partition())));
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            long deadline = System.currentTimeMillis() + request.path("timeout_ms").asLong(30_000);
            while (ends.entrySet().stream().anyMatch(end -> consumer.position(end.getKey()) < end.getValue())) {
                if (System.currentTimeMillis() > deadline) throw new IllegalStateException("not at the ends: " + ends);
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                    answer.addArray().add(record.partition()).add(record.offset()).add(text(record.key())).add(text(record.value()));
                }
            }
        }
        return answer;
    }

    static String text(byte[] bytes) {
        return bytes == null ? null : new String(bytes, StandardCharsets.UTF_8);
    }

    static void assign(KafkaConsumer<byte[], byte[]> consumer, JsonNode positions) {
        List<TopicPartition> partitions = new ArrayList<>();
        positions.forEach(each -> partitions.add(new TopicPartition(each.get(0).asText(), each.get(1).asInt())));
        consumer.assign(partitions);
        for (int at = 0; at < partitions.size(); at++) {
            JsonNode offset = positions.get(at).path(2);
            if (offset.isNumber()) consumer.seek(partitions.get(at), offset.asLong());
            else consumer.seekToBeginning(List.of(partitions.get(at)));
        }
    }

    private static ObjectNode shown(ConsumerRecord<byte[], byte[]> record) {
        ObjectNode node = Lines.JSON.createObjectNode();
        node.put("topic", record.topic());
        node.put("partition", record.partition());
        node.put("offset", record.offset());
        node.put("timestamp", record.timestamp());
        node.put("timestamp_type", record.timestampType().name);
        node.put("key", record.key());
        node.put("value", record.value());
        ArrayNode headers = node.putArray("headers");
        for (Header header : record.headers()) headers.addArray().add(header.key()).add(header.value());
        node.put("leader_epoch", record.leaderEpoch().orElse(-1));
        return node;
    }

    /** {"topic", "partition", "times": [ms]}: first and last offset, and the first offset at or after each time (null if none). */
    static Object offsets(JsonNode request) {
        TopicPartition partition = new TopicPartition(request.get("topic").asText(), request.get("partition").asInt());
        ObjectNode answer = Lines.JSON.createObjectNode();
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(request)) {
            answer.put("beginning", consumer.beginningOffsets(List.of(partition)).get(partition));
            answer.put("end", consumer.endOffsets(List.of(partition)).get(partition));
            ArrayNode times = answer.putArray("times");
            for (JsonNode time : request.path("times")) {
                Map<TopicPartition, Long> wanted = new LinkedHashMap<>();
                wanted.put(partition, time.asLong());
                var found = consumer.offsetsForTimes(wanted).get(partition);
                if (found == null) times.addNull();
                else times.addArray().add(found.offset()).add(found.timestamp());
            }
        }
        return answer;
    }
}
