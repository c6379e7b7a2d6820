package ottla;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.NavigableMap;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.server.log.remote.metadata.storage.OpenCache;
import org.apache.kafka.server.log.remote.metadata.storage.RemoteLogMetadataTopicPartitioner;
import org.apache.kafka.server.log.remote.metadata.storage.RemoteLogSegmentMetadataSnapshot;
import org.apache.kafka.server.log.remote.metadata.storage.serialization.RemoteLogMetadataSerde;
import org.apache.kafka.server.log.remote.storage.RemoteLogMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentId;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata.CustomMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadataUpdate;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentState;
import org.apache.kafka.server.log.remote.storage.RemotePartitionDeleteMetadata;
import org.apache.kafka.server.log.remote.storage.RemotePartitionDeleteState;

/** Kafka's own classes for the metadata of remote segments: its serde, its cache, its partitioner, its rule for lineages. */
public final class TierServer {
    private static final RemoteLogMetadataSerde SERDE = new RemoteLogMetadataSerde();

    private TierServer() {}

    public static void main(String[] args) throws Exception {
        Lines.serve(TierServer::run);
    }

    private static Object run(JsonNode request) throws Exception {
        switch (request.get("verb").asText()) {
            case "read": return read(request);
            case "write": return write(request);
            case "partitions": return partitions(request);
            case "cache": return cache(request);
            case "within": return within(request);
            case "transitions": return transitions();
            default: throw new IllegalArgumentException("no verb " + request.get("verb"));
        }
    }

    /** {"values"}: what Kafka reads from each value, and the bytes that it writes for that. */
    private static Object read(JsonNode request) throws Exception {
        ArrayNode answer = Lines.JSON.createArrayNode();
        for (JsonNode value : request.get("values")) {
            ObjectNode shown = answer.addObject();
            try {
                RemoteLogMetadata metadata = SERDE.deserialize(value.binaryValue());
                shown.set("item", describe(metadata));
                shown.put("value", SERDE.serialize(metadata));
            } catch (RuntimeException thrown) {
                shown.put("refused", thrown.getClass().getSimpleName());
            }
        }
        return answer;
    }

    /** {"items"}: the bytes that Kafka writes for each. */
    private static Object write(JsonNode request) {
        ArrayNode answer = Lines.JSON.createArrayNode();
        for (JsonNode item : request.get("items")) answer.add(SERDE.serialize(build(item)));
        return answer;
    }

    /** {"items": [topic id, partition, number of partitions of the metadata topic] each}. */
    private static Object partitions(JsonNode request) {
        ArrayNode answer = Lines.JSON.createArrayNode();
        for (JsonNode item : request.get("items")) {
            var partition = new TopicIdPartition(Uuid.fromString(item.get(0).asText()), new TopicPartition("any", item.get(1).asInt()));
            answer.add(new RemoteLogMetadataTopicPartitioner(item.get(2).asInt()).metadataPartition(partition));
        }
        return answer;
    }

    /** {"values", "epochs", "offsets"}: a cache that got these records, and its answers for these epochs and offsets. */
    private static Object cache(JsonNode request) throws Exception {
        OpenCache cache = new OpenCache();
        for (JsonNode value : request.get("values")) {
            try {
                cache.apply(SERDE.deserialize(value.binaryValue()));
            } catch (Exception refused) {
                // The next answers tell that nothing has changed.
            }
        }
        ObjectNode answer = Lines.JSON.createObjectNode();
        ObjectNode all = answer.putObject("all");
        for (Iterator<RemoteLogSegmentMetadata> each = cache.all(); each.hasNext();) {
            RemoteLogSegmentMetadata segment = each.next();
            all.set(segment.remoteLogSegmentId().id().toString(), describe(segment));
        }
        ObjectNode epochs = answer.putObject("epochs");
        for (JsonNode number : request.get("epochs")) {
            int epoch = number.asInt();
            ObjectNode told = epochs.putObject(number.asText());
            cache.highest(epoch).ifPresentOrElse(highest -> told.put("highest", highest), () -> told.putNull("highest"));
            ArrayNode listed = told.putArray("listed");
            for (Iterator<RemoteLogSegmentMetadata> each = cache.listed(epoch); each.hasNext();)
                listed.add(each.next().remoteLogSegmentId().id().toString());
            ArrayNode at = told.putArray("at");
            ArrayNode transactions = told.putArray("transactions");
            for (JsonNode offset : request.get("offsets")) {
                at.add(name(cache.at(epoch, offset.asLong())));
                transactions.add(name(cache.withTransactions(epoch, offset.asLong())));
            }
        }
        return answer;
    }

    /** {"cases": {"value", "log_end", "epochs"} each}: whether Kafka's leader counts the segment as one of its history. */
    private static Object within(JsonNode request) throws Exception {
        Class<?> manager = Class.forName("org.apache.kafka.server.log.remote.storage.RemoteLogManager");
        Method rule = manager.getDeclaredMethod("isRemoteSegmentWithinLeaderEpochs", RemoteLogSegmentMetadata.class, long.class, NavigableMap.class);
        Method filter = manager.getDeclaredMethod("buildFilteredLeaderEpochMap", NavigableMap.class);
        rule.setAccessible(true);
        filter.setAccessible(true);
        ArrayNode answer = Lines.JSON.createArrayNode();
        for (JsonNode each : request.get("cases")) {
            var segment = (RemoteLogSegmentMetadata) SERDE.deserialize(each.get("value").binaryValue());
            Object known = filter.invoke(null, epochs(each.get("epochs")));
            answer.add((boolean) rule.invoke(null, segment, each.get("log_end").asLong(), known));
        }
        return answer;
    }

    /** The transitions that are valid, "null" standing for nothing that is known. */
    private static Object transitions() {
        ArrayNode answer = Lines.JSON.createArrayNode();
        List<RemoteLogSegmentState> segments = new ArrayList<>(List.of(RemoteLogSegmentState.values()));
        List<RemotePartitionDeleteState> deletions = new ArrayList<>(List.of(RemotePartitionDeleteState.values()));
        segments.add(null);
        deletions.add(null);
        for (RemoteLogSegmentState after : RemoteLogSegmentState.values())
            for (RemoteLogSegmentState before : segments)
                if (RemoteLogSegmentState.isValidTransition(before, after)) answer.addArray().add(String.valueOf(before)).add(after.name());
        for (RemotePartitionDeleteState after : RemotePartitionDeleteState.values())
            for (RemotePartitionDeleteState before : deletions)
                if (RemotePartitionDeleteState.isValidTransition(before, after)) answer.addArray().add(String.valueOf(before)).add(after.name());
        return answer;
    }

    private static String name(Optional<RemoteLogSegmentMetadata> segment) {
        return segment.map(found -> found.remoteLogSegmentId().id().toString()).orElse(null);
    }

    private static NavigableMap<Integer, Long> epochs(JsonNode pairs) {
        NavigableMap<Integer, Long> epochs = new TreeMap<>();
        pairs.forEach(pair -> epochs.put(pair.get(0).asInt(), pair.get(1).asLong()));
        return epochs;
    }

    private static TopicIdPartition partition(JsonNode item) {
        return new TopicIdPartition(
            Uuid.fromString(item.get("topic_id").asText()), new TopicPartition(item.get("topic").asText(), item.get("partition").asInt()));
    }

    private static RemoteLogMetadata build(JsonNode item) {
        int broker = item.get("broker_id").asInt();
        long told = item.get("event_timestamp_ms").asLong();
        String state = item.get("state").asText();
        if (item.get("kind").asText().equals("deletion"))
            return new RemotePartitionDeleteMetadata(partition(item), RemotePartitionDeleteState.valueOf(state), told, broker);
        RemoteLogSegmentId id = new RemoteLogSegmentId(partition(item), Uuid.fromString(item.get("uuid").asText()));
        Optional<CustomMetadata> custom = Optional.empty();
        if (!item.get("custom_metadata").isNull()) {
            List<Byte> bytes = new ArrayList<>();
            item.get("custom_metadata").forEach(each -> bytes.add((byte) each.asInt()));
            byte[] value = new byte[bytes.size()];
            for (int i = 0; i < value.length; i++) value[i] = bytes.get(i);
            custom = Optional.of(new CustomMetadata(value));
        }
        if (item.get("kind").asText().equals("update"))
            return new RemoteLogSegmentMetadataUpdate(id, told, custom, RemoteLogSegmentState.valueOf(state), broker);
        var segment = new RemoteLogSegmentMetadata(
            id, item.get("start_offset").asLong(), item.get("end_offset").asLong(), item.get("max_timestamp_ms").asLong(), broker, told,
            item.get("size_bytes").asInt(), custom, RemoteLogSegmentState.valueOf(state), epochs(item.get("leader_epochs")),
            item.get("txn_index_empty").asBoolean());
        return item.get("kind").asText().equals("snapshot") ? RemoteLogSegmentMetadataSnapshot.create(segment) : segment;
    }

    private static ObjectNode describe(RemoteLogMetadata metadata) {
        ObjectNode shown = Lines.JSON.createObjectNode();
        shown.put("broker_id", metadata.brokerId());
        shown.put("event_timestamp_ms", metadata.eventTimestampMs());
        if (metadata instanceof RemoteLogSegmentMetadata) {
            var segment = (RemoteLogSegmentMetadata) metadata;
            shown.put("kind", "segment").put("uuid", segment.remoteLogSegmentId().id().toString()).put("state", segment.state().name());
            shown.put("start_offset", segment.startOffset()).put("end_offset", segment.endOffset());
            shown.put("max_timestamp_ms", segment.maxTimestampMs()).put("size_bytes", segment.segmentSizeInBytes());
            shown.put("txn_index_empty", segment.isTxnIdxEmpty());
            add(shown, segment.segmentLeaderEpochs(), segment.customMetadata());
        } else if (metadata instanceof RemoteLogSegmentMetadataUpdate) {
            var update = (RemoteLogSegmentMetadataUpdate) metadata;
            shown.put("kind", "update").put("uuid", update.remoteLogSegmentId().id().toString()).put("state", update.state().name());
            add(shown, null, update.customMetadata());
        } else if (metadata instanceof RemotePartitionDeleteMetadata) {
            shown.put("kind", "deletion").put("state", ((RemotePartitionDeleteMetadata) metadata).state().name());
        } else {
            var segment = (RemoteLogSegmentMetadataSnapshot) metadata;
            shown.put("kind", "snapshot").put("uuid", segment.segmentId().toString()).put("state", segment.state().name());
            shown.put("start_offset", segment.startOffset()).put("end_offset", segment.endOffset());
            shown.put("max_timestamp_ms", segment.maxTimestampMs()).put("size_bytes", segment.segmentSizeInBytes());
            shown.put("txn_index_empty", segment.isTxnIdxEmpty());
            add(shown, segment.segmentLeaderEpochs(), segment.customMetadata());
            return shown;
        }
        TopicIdPartition partition = metadata.topicIdPartition();
        shown.put("topic", partition.topic()).put("topic_id", partition.topicId().toString()).put("partition", partition.partition());
        return shown;
    }

    private static void add(ObjectNode shown, NavigableMap<Integer, Long> epochs, Optional<CustomMetadata> custom) {
        if (epochs != null) {
            ArrayNode pairs = shown.putArray("leader_epochs");
            epochs.forEach((epoch, start) -> pairs.addArray().add(epoch).add(start));
        }
        if (custom.isEmpty()) {
            shown.putNull("custom_metadata");
            return;
        }
        ArrayNode bytes = shown.putArray("custom_metadata");
        for (byte each : custom.get().value()) bytes.add(each & 0xff);
    }
}
