package org.apache.kafka.controller;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.util.AbstractMap.SimpleEntry;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.message.AlterPartitionReassignmentsRequestData;
import org.apache.kafka.common.message.AlterPartitionRequestData;
import org.apache.kafka.common.message.AssignReplicasToDirsRequestData;
import org.apache.kafka.common.message.BrokerRegistrationRequestData;
import org.apache.kafka.common.message.CreatePartitionsRequestData;
import org.apache.kafka.common.message.CreatePartitionsResponseData;
import org.apache.kafka.common.message.CreateTopicsRequestData;
import org.apache.kafka.common.message.ElectLeadersRequestData;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.metadata.BrokerRegistrationChangeRecord;
import org.apache.kafka.common.metadata.ClearElrRecord;
import org.apache.kafka.common.metadata.ConfigRecord;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.metadata.RemoveTopicRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.metadata.UnregisterBrokerRecord;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.metadata.VersionRange;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.Feature;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.timeline.SnapshotRegistry;

/**
 * What Kafka's own controller decides on a given state, and {"verb": "versions"} what its versions can do. Its parts are visible in their package only, so this stands in it.
 * {"verb": "reset"} begins with nothing, {"verb": "apply", "records": [...], "offset": where the log ends} replays records, every other verb
 * asks for a decision and changes nothing: the records that would be written, and the response if there is one.
 */
public final class Decisions {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final MetadataRecordSerde SERDE = new MetadataRecordSerde();

    private FeatureControlManager features;
    private ClusterControlManager cluster;
    private ConfigurationControlManager configs;
    private ReplicationControlManager replication;
    private long offset;

    public Object answer(JsonNode request) throws Exception {
        switch (request.get("verb").asText()) {
            case "reset":
                reset();
                return JSON.createObjectNode();
            case "apply":
                for (JsonNode each : request.get("records")) replay(read(each.binaryValue()));
                offset = request.get("offset").asLong();
                return JSON.createObjectNode();
            case "versions":
                return versions();
            default:
                return decision(request);
        }
    }

    /** What Kafka knows of its own versions. */
    private static ObjectNode versions() {
        ObjectNode answer = JSON.createObjectNode();
        ArrayNode levels = answer.putArray("levels");
        for (MetadataVersion version : MetadataVersion.VERSIONS) {
            levels.addArray().add(version.featureLevel()).add(version.toString())
                .add(version.partitionRecordVersion()).add(version.registerBrokerRecordVersion()).add(version.didMetadataChange())
                .add(version.isMetadataTransactionSupported()).add(version.isControllerRegistrationSupported())
                .add(version.isDirectoryAssignmentSupported()).add(!version.isLeaderEpochBumpRequiredOnIsrShrink())
                .add(version.isElrSupported()).add(version.isCordonedLogDirsSupported());
        }
        ArrayNode needs = answer.putArray("needs");
        for (Feature feature : Feature.PRODUCTION_FEATURES)
            for (var version : feature.featureVersions())
                version.dependencies().forEach((other, level) ->
                    needs.addArray().add(version.featureName()).add(version.featureLevel()).add(other).add(level));
        return answer;
    }

    private void reset() {
        LogContext context = new LogContext();
        SnapshotRegistry registry = new SnapshotRegistry(context);
        Map<String, VersionRange> supported = new HashMap<>();
        supported.put(MetadataVersion.FEATURE_NAME, VersionRange.of((short) 7, MetadataVersion.latestProduction().featureLevel()));
        for (Feature feature : Feature.PRODUCTION_FEATURES)
            supported.put(feature.featureName(), VersionRange.of((short) 0, feature.latestProduction()));
        features = new FeatureControlManager.Builder().setSnapshotRegistry(registry)
            .setQuorumFeatures(new QuorumFeatures(1, supported, List.of(1))).build();
        configs = new ConfigurationControlManager.Builder().setSnapshotRegistry(registry).setFeatureControl(features)
            .setKafkaConfigSchema(kafka.server.KafkaRaftServer.configSchema()).setNodeId(1).build();
        cluster = new ClusterControlManager.Builder().setSnapshotRegistry(registry).setClusterId("cluster")
            .setFeatureControlManager(features).setSessionTimeoutNs(-1)
            .setBrokerShutdownHandler((id, clean, records) -> replication.handleBrokerShutdown(id, clean, records)).build();
        replication = new ReplicationControlManager.Builder().setSnapshotRegistry(registry).setConfigurationControl(configs)
            .setClusterControl(cluster).setFeatureControl(features).build();
        offset = 0;
    }

    private static ApiMessage read(byte[] bytes) {
        return SERDE.read(new ByteBufferAccessor(ByteBuffer.wrap(bytes)), bytes.length).message();
    }

    private void replay(ApiMessage message) {
        if (message instanceof RegisterBrokerRecord record) cluster.replay(record, offset);
        else if (message instanceof UnregisterBrokerRecord record) cluster.replay(record);
        else if (message instanceof BrokerRegistrationChangeRecord record) cluster.replay(record);
        else if (message instanceof TopicRecord record) replication.replay(record);
        else if (message instanceof PartitionRecord record) replication.replay(record);
        else if (message instanceof PartitionChangeRecord record) replication.replay(record);
        else if (message instanceof RemoveTopicRecord record) replication.replay(record);
        else if (message instanceof ClearElrRecord record) replication.replay(record);
        else if (message instanceof ConfigRecord record) configs.replay(record);
        else if (message instanceof FeatureLevelRecord record) features.replay(record);
    }

    private ObjectNode decision(JsonNode request) throws Exception {
        List<ApiMessageAndVersion> records = new ArrayList<>();
        Message response = null;
        ObjectNode codes = JSON.createObjectNode();
        int broker = request.path("broker").asInt(-1);
        ControllerResult<?> result = null;
        switch (request.get("verb").asText()) {
            case "fence": replication.handleBrokerFenced(broker, records); break;
            case "unfence": replication.handleBrokerUnfenced(broker, epoch(broker), records); break;
            case "leave": replication.handleBrokerInControlledShutdown(broker, epoch(broker), records); break;
            case "unregister": result = replication.unregisterBroker(broker); break;
            case "offline": replication.handleDirectoriesOffline(broker, epoch(broker), directories(request), records); break;
            case "balance": result = replication.maybeBalancePartitionLeaders(); break;
            case "unclean": result = replication.maybeElectUncleanLeaders(); break;
            case "register":
                cluster.activate();
                result = cluster.registerBroker(new BrokerRegistrationRequestData(body(request), version(request)), offset,
                    features.finalizedFeatures(Long.MAX_VALUE), features.metadataVersionOrThrow().isAtLeast(MetadataVersion.IBP_4_0_IV1));
                break;
            case "alter_partition":
                result = replication.alterPartition(context(request), new AlterPartitionRequestData(body(request), version(request)));
                break;
            case "reassign":
                result = replication.alterPartitionReassignments(new AlterPartitionReassignmentsRequestData(body(request), version(request)));
                break;
            case "elect": result = replication.electLeaders(new ElectLeadersRequestData(body(request), version(request))); break;
            case "assign_dirs":
                result = replication.handleAssignReplicasToDirs(new AssignReplicasToDirsRequestData(body(request), version(request)));
                break;
            case "create_topics":
                result = replication.createTopics(context(request), new CreateTopicsRequestData(body(request), version(request)), Set.of(), true);
                break;
            case "create_partitions":
                var grown = replication.createPartitions(context(request),
                    new ArrayList<>(new CreatePartitionsRequestData(body(request), version(request)).topics()));
                records = grown.records();
                response = new CreatePartitionsResponseData().setResults(grown.response());
                break;
            case "alter_configs":
                var altered = configs.incrementalAlterConfigs(changes(request), false, false);
                records = altered.records();
                altered.response().forEach((resource, error) -> codes.put(resource.name(), error.error().code()));
                break;
            default: throw new IllegalArgumentException(request.toString());
        }
        if (result != null) {
            records = result.records();
            if (result.response() instanceof Message message) response = message;
        }
        ObjectNode answer = JSON.createObjectNode();
        ArrayNode written = answer.putArray("records");
        for (ApiMessageAndVersion record : records) written.add(bytes(record));
        answer.set("codes", codes);
        if (response != null) answer.put("response", array(MessageUtil.toByteBufferAccessor(response, version(request)).buffer()));
        return answer;
    }

    private long epoch(int broker) {
        return cluster.brokerRegistrations().get(broker).epoch();
    }

    private static List<Uuid> directories(JsonNode request) throws Exception {
        List<Uuid> found = new ArrayList<>();
        for (JsonNode each : request.get("directories")) {
            ByteBuffer id = ByteBuffer.wrap(each.binaryValue());
            found.add(new Uuid(id.getLong(), id.getLong()));
        }
        return found;
    }

    private static Map<ConfigResource, Map<String, Map.Entry<AlterConfigOp.OpType, String>>> changes(JsonNode request) {
        ConfigResource resource = new ConfigResource(
            ConfigResource.Type.forId((byte) request.get("type").asInt()), request.get("name").asText());
        AlterConfigOp.OpType op = AlterConfigOp.OpType.forId((byte) request.get("op").asInt());
        return Map.of(resource, Map.of(request.get("key").asText(), new SimpleEntry<>(op, request.get("value").asText(null))));
    }

    private static ByteBufferAccessor body(JsonNode request) throws Exception {
        return new ByteBufferAccessor(ByteBuffer.wrap(request.get("body").binaryValue()));
    }

    private static short version(JsonNode request) {
        return (short) request.get("version").asInt();
    }

    private static ControllerRequestContext context(JsonNode request) {
        RequestHeaderData header = new RequestHeaderData().setRequestApiVersion(version(request));
        return new ControllerRequestContext(header, KafkaPrincipal.ANONYMOUS, OptionalLong.empty());
    }

    private static byte[] bytes(ApiMessageAndVersion record) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(SERDE.recordSize(record, cache));
        SERDE.write(record, cache, new ByteBufferAccessor(buffer));
        buffer.flip();
        return array(buffer);
    }

    private static byte[] array(ByteBuffer buffer) {
        byte[] found = new byte[buffer.remaining()];
        buffer.get(found);
        return found;
    }
}
