package ottla;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Share consumers by JSON lines; only the 4.x clients have them. A call polls or acknowledges for the one member it names. */
public final class ShareServer {
    private static final Map<String, KafkaShareConsumer<byte[], byte[]>> MEMBERS = new HashMap<>();
    private static final Map<List<Object>, ConsumerRecord<byte[], byte[]>> ACQUIRED = new HashMap<>();

    private ShareServer() {}

    public static void main(String[] args) throws Exception {
        Lines.serve(ShareServer::run);
    }

    private static Object run(JsonNode request) throws Exception {
        switch (request.get("verb").asText()) {
            case "share_join": return join(request);
            case "share_poll": return poll(request);
            case "share_ack": return acknowledge(request);
            case "share_commit": return commit(request);
            case "share_leave": MEMBERS.remove(request.get("member").asText()).close(Duration.ofSeconds(10)); return Map.of();
            default: throw new IllegalArgumentException("no verb " + request.get("verb"));
        }
    }

    private static KafkaShareConsumer<byte[], byte[]> member(JsonNode request) {
        return MEMBERS.get(request.get("member").asText());
    }

    private static Object join(JsonNode request) {
        List<String> topics = new ArrayList<>();
        request.get("topics").forEach(topic -> topics.add(topic.asText()));
        var consumer = new KafkaShareConsumer<>(ClientServer.settings(request), new ByteArrayDeserializer(), new ByteArrayDeserializer());
        consumer.subscribe(topics);
        MEMBERS.put(request.get("member").asText(), consumer);
        return Map.of();
    }

    /** {"timeout_ms"}: the first records that come, [topic, partition, offset, value, delivery count] each; none is an answer too. */
    private static Object poll(JsonNode request) {
        ArrayNode answer = Lines.JSON.createArrayNode();
        for (ConsumerRecord<byte[], byte[]> each : member(request).poll(Duration.ofMillis(request.get("timeout_ms").asLong()))) {
            ACQUIRED.put(List.of(request.get("member").asText(), each.topic(), each.partition(), each.offset()), each);
            ArrayNode shown = answer.addArray().add(each.topic()).add(each.partition()).add(each.offset());
            shown.add(new String(each.value(), StandardCharsets.UTF_8)).add(each.deliveryCount().orElse((short) -1));
        }
        return answer;
    }

    private static Object acknowledge(JsonNode request) {
        for (JsonNode each : request.get("acks")) {
            AcknowledgeType type = AcknowledgeType.valueOf(each.get("type").asText().toUpperCase(Locale.ROOT));
            List<Object> where = List.of(
                request.get("member").asText(), each.get("topic").asText(), each.get("partition").asInt(), each.get("offset").asLong());
            member(request).acknowledge(ACQUIRED.get(where), type);
        }
        return Map.of();
    }

    /** What the broker said of each partition: null, or the name of the error. */
    private static Object commit(JsonNode request) {
        Map<String, String> answer = new TreeMap<>();
        member(request).commitSync(Duration.ofSeconds(20)).forEach((partition, error) ->
            answer.put(partition.topicPartition().toString(), error.map(each -> each.getClass().getSimpleName()).orElse(null)));
        return answer;
    }
}
