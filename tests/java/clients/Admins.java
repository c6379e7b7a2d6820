package ottla;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.DescribeConfigsOptions;
import org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;

/** The Java admin client: one client per bootstrap address and configuration, kept for the life of the JVM. */
final class Admins {
    private static final Map<Map<String, Object>, Admin> OPEN = new HashMap<>();

    private Admins() {}

    static void closeAll() {
        OPEN.values().forEach(Admin::close);
    }

    static Admin admin(JsonNode request) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", request.get("bootstrap").asText());
        request.path("client").fields().forEachRemaining(entry -> settings.put(entry.getKey(), entry.getValue().asText()));
        return OPEN.computeIfAbsent(settings, Admin::create);
    }

    static Object run(String verb, JsonNode request) throws Exception {
        Admin admin = admin(request);
        switch (verb) {
            case "create_topic": return createTopic(admin, request);
            case "delete_topic": admin.deleteTopics(List.of(topic(request))).all().get(); return Map.of();
            case "list_topics": return new TreeSet<>(admin.listTopics().names().get());
            case "describe_topic": return describeTopic(admin, request);
            case "create_partitions":
                admin.createPartitions(Map.of(topic(request), NewPartitions.increaseTo(request.get("total").asInt()))).all().get();
                return Map.of();
            case "describe_configs": return describeConfigs(admin, request);
            case "alter_configs": return alterConfigs(admin, request);
            case "list_offsets": return listOffsets(admin, request);
            case "delete_records": return deleteRecords(admin, request);
            case "describe_cluster": return describeCluster(admin);
            case "describe_log_dirs": return describeLogDirs(admin, request);
            case "describe_features": return describeFeatures(admin);
            case "describe_quorum": return describeQuorum(admin);
            case "describe_producers": return describeProducers(admin, request);
            case "create_acls": return Acls.create(admin, request);
            case "describe_acls": return Acls.describe(admin, request);
            case "delete_acls": return Acls.delete(admin, request);
            default: throw new IllegalArgumentException("no verb " + verb);
        }
    }

    private static String topic(JsonNode request) {
        return request.get("topic").asText();
    }

    private static TopicPartition partition(JsonNode request) {
        return new TopicPartition(topic(request), request.path("partition").asInt(0));
    }

    private static Object createTopic(Admin admin, JsonNode request) throws Exception {
        Map<String, String> configs = new HashMap<>();
        request.path("configs").fields().forEachRemaining(entry -> configs.put(entry.getKey(), entry.getValue().asText()));
        Optional<Integer> partitions = Optional.of(request.path("partitions").asInt(1));
        NewTopic topic = new NewTopic(topic(request), partitions, Optional.of((short) request.path("replicas").asInt(1)));
        var result = admin.createTopics(List.of(topic.configs(configs)));
        result.all().get();
        ObjectNode answer = Lines.JSON.createObjectNode();
        answer.put("id", result.topicId(topic(request)).get().toString());
        answer.put("partitions", result.numPartitions(topic(request)).get());
        answer.put("configs", result.config(topic(request)).get().entries().size());
        return answer;
    }

    private static Object describeTopic(Admin admin, JsonNode request) throws Exception {
        TopicDescription topic = admin.describeTopics(List.of(topic(request))).allTopicNames().get().get(topic(request));
        ObjectNode answer = Lines.JSON.createObjectNode();
        answer.put("name", topic.name());
        answer.put("id", topic.topicId().toString());
        answer.put("internal", topic.isInternal());
        ArrayNode partitions = answer.putArray("partitions");
        topic.partitions().forEach(each -> {
            ObjectNode node = partitions.addObject();
            node.put("index", each.partition());
            node.put("leader", each.leader().id());
            ArrayNode replicas = node.putArray("replicas");
            each.replicas().stream().map(Node::id).forEach(replicas::add);
            ArrayNode isr = node.putArray("isr");
            each.isr().stream().map(Node::id).forEach(isr::add);
        });
        return answer;
    }

    private static ConfigResource resource(JsonNode request) {
        return new ConfigResource(ConfigResource.Type.valueOf(request.get("type").asText()), request.get("name").asText());
    }

    private static Object describeConfigs(Admin admin, JsonNode request) throws Exception {
        DescribeConfigsOptions options = new DescribeConfigsOptions().includeSynonyms(true).includeDocumentation(true);
        Config config = admin.describeConfigs(List.of(resource(request)), options).all().get().get(resource(request));
        ObjectNode answer = Lines.JSON.createObjectNode();
        for (ConfigEntry entry : config.entries()) {
            ObjectNode node = answer.putObject(entry.name());
            node.put("value", entry.value());
            node.put("source", entry.source().name());
            node.put("type", entry.type().name());
            node.put("read_only", entry.isReadOnly());
            node.put("sensitive", entry.isSensitive());
            node.put("documented", entry.documentation() != null && !entry.documentation().isBlank());
            ArrayNode synonyms = node.putArray("synonyms");
            entry.synonyms().forEach(each -> synonyms.addArray().add(each.name()).add(each.value()).add(each.source().name()));
        }
        return answer;
    }

    private static Object alterConfigs(Admin admin, JsonNode request) throws Exception {
        List<AlterConfigOp> operations = new ArrayList<>();
        for (JsonNode each : request.get("operations")) {
            ConfigEntry entry = new ConfigEntry(each.get(1).asText(), each.path(2).isNull() ? null : each.path(2).asText(""));
            operations.add(new AlterConfigOp(entry, AlterConfigOp.OpType.valueOf(each.get(0).asText())));
        }
        admin.incrementalAlterConfigs(Map.of(resource(request), operations)).all().get();
        return Map.of();
    }

    private static Object listOffsets(Admin admin, JsonNode request) throws Exception {
        JsonNode spec = request.get("spec");
        OffsetSpec wanted;
        switch (spec.asText()) {
            case "earliest": wanted = OffsetSpec.earliest(); break;
            case "latest": wanted = OffsetSpec.latest(); break;
            case "max_timestamp": wanted = OffsetSpec.maxTimestamp(); break;
            default: wanted = OffsetSpec.forTimestamp(spec.asLong());
        }
        ListOffsetsResultInfo found = admin.listOffsets(Map.of(partition(request), wanted)).partitionResult(partition(request)).get();
        return Map.of("offset", found.offset(), "timestamp", found.timestamp(), "leader_epoch", found.leaderEpoch().orElse(-1));
    }

    private static Object deleteRecords(Admin admin, JsonNode request) throws Exception {
        RecordsToDelete before = RecordsToDelete.beforeOffset(request.get("before").asLong());
        var result = admin.deleteRecords(Map.of(partition(request), before)).lowWatermarks().get(partition(request)).get();
        return Map.of("low_watermark", result.lowWatermark());
    }

    private static Object describeCluster(Admin admin) throws Exception {
        var result = admin.describeCluster();
        ObjectNode answer = Lines.JSON.createObjectNode();
        answer.put("cluster_id", result.clusterId().get());
        answer.put("controller", result.controller().get().id());
        ArrayNode nodes = answer.putArray("nodes");
        for (Node node : result.nodes().get()) nodes.addArray().add(node.id()).add(node.host()).add(node.port());
        return answer;
    }

    private static Object describeLogDirs(Admin admin, JsonNode request) throws Exception {
        ObjectNode answer = Lines.JSON.createObjectNode();
        admin.describeLogDirs(List.of(request.path("broker").asInt(1))).allDescriptions().get().forEach((broker, directories) ->
            directories.forEach((path, directory) -> {
                ObjectNode node = answer.putObject(path);
                node.put("usable", directory.usableBytes().orElse(-1));
                node.put("total", directory.totalBytes().orElse(-1));
                ObjectNode replicas = node.putObject("replicas");
                directory.replicaInfos().forEach((partition, info) -> replicas.put(partition.toString(), info.size()));
            }));
        return answer;
    }

    private static Object describeFeatures(Admin admin) throws Exception {
        var metadata = admin.describeFeatures().featureMetadata().get();
        Map<String, Object> finalized = new TreeMap<>();
        metadata.finalizedFeatures().forEach((name, range) -> finalized.put(name, List.of(range.minVersionLevel(), range.maxVersionLevel())));
        Map<String, Object> supported = new TreeMap<>();
        metadata.supportedFeatures().forEach((name, range) -> supported.put(name, List.of(range.minVersion(), range.maxVersion())));
        return Map.of("finalized", finalized, "supported", supported);
    }

    private static Object describeQuorum(Admin admin) throws Exception {
        var quorum = admin.describeMetadataQuorum().quorumInfo().get();
        ObjectNode answer = Lines.JSON.createObjectNode();
        answer.put("leader", quorum.leaderId());
        answer.put("epoch", quorum.leaderEpoch());
        answer.put("high_watermark", quorum.highWatermark());
        ArrayNode voters = answer.putArray("voters");
        quorum.voters().forEach(each -> voters.add(each.replicaId()));
        return answer;
    }

    private static Object describeProducers(Admin admin, JsonNode request) throws Exception {
        ArrayNode answer = Lines.JSON.createArrayNode();
        var state = admin.describeProducers(List.of(partition(request))).partitionResult(partition(request)).get();
        for (ProducerState each : state.activeProducers()) {
            ObjectNode node = answer.addObject();
            node.put("id", each.producerId());
            node.put("epoch", each.producerEpoch());
            node.put("last_sequence", each.lastSequence());
        }
        return answer;
    }
}
