package ottla;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Kafka's Java clients by JSON lines; compiled against 4.3.1 and 3.9.2 alike. Every request names "verb" and "bootstrap".
 * Keys and values are base64, null is null. Producing is here, consuming in Consumers, members
 * and transactions in Groups, administration in Admins.
 */
public final class ClientServer {
    private ClientServer() {}

    public static void main(String[] args) throws Exception {
        try {
            Lines.serve(ClientServer::run);
        } finally {
            Admins.closeAll();
        }
    }

    private static Object run(JsonNode request) throws Exception {
        String verb = request.get("verb").asText();
        switch (verb) {
            case "produce": return produce(request);
            case "generate": return Loads.generate(request);
            case "digest": return Loads.digest(request);
            case "consume": return Consumers.consume(request);
            case "drain": return Consumers.drain(request);
            case "offsets": return Consumers.offsets(request);
            case "error_texts":
                return java.util.Arrays.stream(org.apache.kafka.common.protocol.Errors.values())
                    .map(org.apache.kafka.common.protocol.Errors::message).filter(java.util.Objects::nonNull).toList();
            case "system":
                request.get("properties").fields().forEachRemaining(each -> System.setProperty(each.getKey(), each.getValue().asText()));
                return Map.of();
            case "version": return Map.of("version", org.apache.kafka.common.utils.AppInfoParser.getVersion());
            default:
                Object answer = Groups.run(verb, request);
                return answer != null ? answer : Admins.run(verb, request);
        }
    }

    static Map<String, Object> settings(JsonNode request) {
        Map<String, Object> settings = new LinkedHashMap<>();
        settings.put("bootstrap.servers", request.get("bootstrap").asText());
        request.path("config").fields().forEachRemaining(entry -> settings.put(entry.getKey(), entry.getValue().asText()));
        return settings;
    }

    static KafkaProducer<byte[], byte[]> producer(JsonNode request) {
        return new KafkaProducer<>(settings(request), new ByteArraySerializer(), new ByteArraySerializer());
    }

    /** {"topic", "records": [{"key", "value", "partition", "timestamp", "headers": [[name, base64]]}]}: where each record went. */
    private static Object produce(JsonNode request) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer = producer(request)) {
            for (JsonNode each : request.get("records")) sent.add(producer.send(record(request.get("topic").asText(), each)));
            producer.flush();
        }
        ArrayNode answers = Lines.JSON.createArrayNode();
        for (Future<RecordMetadata> future : sent) {
            ObjectNode answer = answers.addObject();
            try {
                RecordMetadata metadata = future.get();
                answer.put("partition", metadata.partition());
                answer.put("offset", metadata.hasOffset() ? metadata.offset() : -1);
                answer.put("timestamp", metadata.hasTimestamp() ? metadata.timestamp() : -1);
            } catch (java.util.concurrent.ExecutionException thrown) {
                answer.setAll(Lines.failure(thrown));
            }
        }
        return answers;
    }

    private static ProducerRecord<byte[], byte[]> record(String topic, JsonNode each) throws Exception {
        Integer partition = each.hasNonNull("partition") ? each.get("partition").asInt() : null;
        Long timestamp = each.hasNonNull("timestamp") ? each.get("timestamp").asLong() : null;
        ProducerRecord<byte[], byte[]> record =
            new ProducerRecord<>(topic, partition, timestamp, binary(each.path("key")), binary(each.path("value")));
        for (JsonNode header : each.path("headers")) record.headers().add(header.get(0).asText(), binary(header.get(1)));
        return record;
    }

    static byte[] binary(JsonNode node) throws java.io.IOException {
        return node.isNull() || node.isMissingNode() ? null : node.binaryValue();
    }
}
