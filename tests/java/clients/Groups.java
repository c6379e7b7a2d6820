package ottla;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/** Members of groups and transactional producers, each by a name of the test's own; they live until they are left or closed. */
final class Groups {
    private static final Map<String, Member> MEMBERS = new HashMap<>();
    private static final Map<String, KafkaProducer<byte[], byte[]>> PRODUCERS = new HashMap<>();

    private Groups() {}

    /** The answer, or null if the verb is not one of these. */
    static Object run(String verb, JsonNode request) throws Exception {
        switch (verb) {
            case "join": MEMBERS.put(name(request, "member"), new Member(request)); return Map.of();
            case "state": return MEMBERS.get(name(request, "member")).state(request);
            case "commit": return MEMBERS.get(name(request, "member")).commit();
            case "stall": return MEMBERS.get(name(request, "member")).stall(request.get("ms").asLong());
            case "leave": return MEMBERS.remove(name(request, "member")).leave();
            case "committed": return committed(request);
            case "group_type":
                var description = Admins.admin(request).describeConsumerGroups(List.of(name(request, "group"))).all().get();
                return Map.of("type", description.get(name(request, "group")).type().toString());
            case "txn_open": return open(request);
            case "txn_begin": producer(request).beginTransaction(); return Map.of();
            case "txn_send": return send(request);
            case "txn_offsets": return offsets(request);
            case "txn_commit": producer(request).commitTransaction(); return Map.of();
            case "txn_abort": producer(request).abortTransaction(); return Map.of();
            case "txn_close": PRODUCERS.remove(name(request, "producer")).close(Duration.ofSeconds(5)); return Map.of();
            default: return null;
        }
    }

    private static String name(JsonNode request, String field) {
        return request.get(field).asText();
    }

    private static KafkaProducer<byte[], byte[]> producer(JsonNode request) {
        return PRODUCERS.get(name(request, "producer"));
    }

    /** {"group"}: what the group has committed, "topic-partition" to offset. */
    private static Object committed(JsonNode request) throws Exception {
        Map<String, Long> answer = new TreeMap<>();
        Admins.admin(request).listConsumerGroupOffsets(name(request, "group")).partitionsToOffsetAndMetadata().get()
            .forEach((partition, offset) -> { if (offset != null) answer.put(partition.toString(), offset.offset()); });
        return answer;
    }

    /** {"producer", "id", "config"}: opens a transactional producer and initialises it (which fences an older one of this id). */
    private static Object open(JsonNode request) {
        ((ObjectNode) request.withObject("/config")).put("transactional.id", name(request, "id"));
        KafkaProducer<byte[], byte[]> producer = ClientServer.producer(request);
        PRODUCERS.put(name(request, "producer"), producer);
        producer.initTransactions();
        return Map.of();
    }

    private static Object send(JsonNode request) throws Exception {
        List<Future<?>> sent = new ArrayList<>();
        for (JsonNode value : request.get("values")) {
            byte[] bytes = value.asText().getBytes(StandardCharsets.UTF_8);
            sent.add(producer(request).send(new ProducerRecord<>(name(request, "topic"), request.get("partition").asInt(), null, bytes)));
        }
        producer(request).flush();
        for (Future<?> each : sent) each.get();
        return Map.of();
    }

    /** {"producer", "member", "offsets": [[topic, partition, offset]]}: puts the member's offsets into the transaction. */
    private static Object offsets(JsonNode request) throws Exception {
        Map<TopicPartition, OffsetAndMetadata> offsets = new LinkedHashMap<>();
        for (JsonNode each : request.get("offsets")) {
            offsets.put(new TopicPartition(each.get(0).asText(), each.get(1).asInt()), new OffsetAndMetadata(each.get(2).asLong()));
        }
        Member member = MEMBERS.get(name(request, "member"));
        var metadata = member.doing(() -> member.consumer().groupMetadata());
        producer(request).sendOffsetsToTransaction(offsets, metadata);
        return Map.of();
    }
}
