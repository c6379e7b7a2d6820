package ottla;

import com.fasterxml.jackson.databind.JsonNode;
import java.net.InetAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.SecurityUtils;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;

/**
 * Kafka's StandardAuthorizer as a service: each request has a set of ACLs and questions about them.
 * In: {super, open, acls: [[type, name, pattern, principal, host, operation, permission]],
 *      questions: [[principal, host, operation, type, name]], some: [[principal, host, operation, type]]}
 * Out: {questions: [bool], some: [bool]}
 */
public final class AuthorizerServer {
    private AuthorizerServer() {}

    public static void main(String[] args) throws Exception {
        Lines.serve(AuthorizerServer::answer);
    }

    static Object answer(JsonNode request) throws Exception {
        try (Metrics metrics = new Metrics(); StandardAuthorizer authorizer = new StandardAuthorizer()) {
            authorizer.withPluginMetrics(new PluginMetricsImpl(metrics, Map.of()));
            authorizer.configure(Map.of(
                "super.users", request.get("super").asText(),
                "allow.everyone.if.no.acl.found", request.get("open").asBoolean()));
            Map<Uuid, StandardAcl> acls = new LinkedHashMap<>();
            for (JsonNode acl : request.get("acls")) {
                acls.put(Uuid.randomUuid(), new StandardAcl(
                    ResourceType.fromCode((byte) acl.get(0).asInt()),
                    acl.get(1).asText(),
                    PatternType.fromCode((byte) acl.get(2).asInt()),
                    acl.get(3).asText(),
                    acl.get(4).asText(),
                    AclOperation.fromCode((byte) acl.get(5).asInt()),
                    AclPermissionType.fromCode((byte) acl.get(6).asInt())));
            }
            authorizer.loadSnapshot(acls);
            authorizer.completeInitialLoad();
            List<Boolean> questions = new ArrayList<>();
            for (JsonNode asked : request.get("questions")) {
                ResourcePattern pattern =
                    new ResourcePattern(type(asked), asked.get(4).asText(), PatternType.LITERAL);
                Action action = new Action(operation(asked), pattern, 1, false, false);
                questions.add(authorizer.authorize(new Client(asked), List.of(action)).get(0)
                    == AuthorizationResult.ALLOWED);
            }
            List<Boolean> some = new ArrayList<>();
            for (JsonNode asked : request.get("some")) {
                some.add(authorizer.authorizeByResourceType(new Client(asked), operation(asked), type(asked))
                    == AuthorizationResult.ALLOWED);
            }
            return Map.of("questions", questions, "some", some);
        }
    }

    private static AclOperation operation(JsonNode asked) {
        return AclOperation.fromCode((byte) asked.get(2).asInt());
    }

    private static ResourceType type(JsonNode asked) {
        return ResourceType.fromCode((byte) asked.get(3).asInt());
    }

    private static final class Client implements AuthorizableRequestContext {
        private final KafkaPrincipal principal;
        private final InetAddress address;

        Client(JsonNode asked) throws Exception {
            principal = SecurityUtils.parseKafkaPrincipal(asked.get(0).asText());
            address = InetAddress.getByName(asked.get(1).asText());
        }

        @Override public String listenerName() { return "PLAINTEXT"; }
        @Override public SecurityProtocol securityProtocol() { return SecurityProtocol.PLAINTEXT; }
        @Override public KafkaPrincipal principal() { return principal; }
        @Override public InetAddress clientAddress() { return address; }
        @Override public int requestType() { return 0; }
        @Override public int requestVersion() { return 0; }
        @Override public String clientId() { return ""; }
        @Override public int correlationId() { return 0; }
    }
}
