package ottla;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AccessControlEntryFilter;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourcePatternFilter;
import org.apache.kafka.common.resource.ResourceType;

/** ACLs as lists of [type, name, pattern, principal, host, operation, permission]; in filters, null is anything. */
final class Acls {
    private Acls() {}

    static Object create(Admin admin, JsonNode request) throws Exception {
        List<AclBinding> bindings = new ArrayList<>();
        for (JsonNode acl : request.get("acls")) bindings.add(binding(acl));
        admin.createAcls(bindings).all().get();
        return Map.of();
    }

    static Object describe(Admin admin, JsonNode request) throws Exception {
        return told(admin.describeAcls(filter(request.get("filter"))).values().get());
    }

    static Object delete(Admin admin, JsonNode request) throws Exception {
        return told(admin.deleteAcls(List.of(filter(request.get("filter")))).all().get());
    }

    private static AclBinding binding(JsonNode acl) {
        return new AclBinding(
            new ResourcePattern(
                ResourceType.fromString(acl.get(0).asText()), acl.get(1).asText(), PatternType.fromString(acl.get(2).asText())),
            new AccessControlEntry(
                acl.get(3).asText(), acl.get(4).asText(), AclOperation.fromString(acl.get(5).asText()),
                AclPermissionType.fromString(acl.get(6).asText())));
    }

    private static AclBindingFilter filter(JsonNode acl) {
        return new AclBindingFilter(
            new ResourcePatternFilter(
                ResourceType.fromString(acl.get(0).asText("ANY")), text(acl.get(1)), PatternType.fromString(acl.get(2).asText("ANY"))),
            new AccessControlEntryFilter(
                text(acl.get(3)), text(acl.get(4)), AclOperation.fromString(acl.get(5).asText("ANY")),
                AclPermissionType.fromString(acl.get(6).asText("ANY"))));
    }

    private static String text(JsonNode node) {
        return node.isNull() ? null : node.asText();
    }

    private static Object told(Collection<AclBinding> bindings) {
        List<List<String>> answer = new ArrayList<>();
        for (AclBinding each : bindings) {
            answer.add(List.of(
                each.pattern().resourceType().name(), each.pattern().name(), each.pattern().patternType().name(),
                each.entry().principal(), each.entry().host(), each.entry().operation().name(),
                each.entry().permissionType().name()));
        }
        answer.sort((one, other) -> one.toString().compareTo(other.toString()));
        return answer;
    }
}
