package ottla;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayInputStream;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import javax.security.auth.login.AppConfigurationEntry;
import javax.security.auth.x500.X500Principal;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.security.JaasContext;
import org.apache.kafka.common.security.kerberos.KerberosName;
import org.apache.kafka.common.security.kerberos.KerberosShortNamer;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

/**
 * How Kafka reads JAAS configurations and names clients: {"verb": ..., "texts": [...], ...} gives a list of results, one per text;
 * a result is a string, a list, or null where Kafka raises an exception.
 */
public final class IdentityServer {
    private interface Reading {
        Object of(String text) throws Exception;
    }

    private IdentityServer() {}

    public static void main(String[] args) throws Exception {
        Lines.serve(IdentityServer::answer);
    }

    private static Object answer(JsonNode request) throws Exception {
        Reading reading = reading(request);
        List<Object> results = new ArrayList<>();
        for (JsonNode text : request.get("texts")) {
            try {
                results.add(reading == null ? null : reading.of(text.asText()));
            } catch (Exception | Error thrown) {
                results.add(null);
            }
        }
        return results;
    }

    /** Null if the settings themselves are wrong. */
    private static Reading reading(JsonNode request) {
        try {
            return switch (request.get("verb").asText()) {
                case "subject" -> IdentityServer::subject;
                case "name" -> text -> new X500Principal(Base64.getDecoder().decode(text)).getName();
                case "ssl" -> SslPrincipalMapper.fromRules(request.get("rules").asText())::getName;
                case "kerberos" -> kerberos(request);
                case "jaas" -> IdentityServer::jaasLine;
                default -> throw new AssertionError(request.get("verb"));
            };
        } catch (IllegalArgumentException wrong) {
            return null;
        }
    }

    private static String subject(String certificate) throws Exception {
        byte[] der = Base64.getDecoder().decode(certificate);
        X509Certificate read = (X509Certificate) CertificateFactory.getInstance("X.509").generateCertificate(new ByteArrayInputStream(der));
        return read.getSubjectX500Principal().getName();
    }

    private static Reading kerberos(JsonNode request) {
        List<String> rules = new ArrayList<>();
        request.get("rules").forEach(rule -> rules.add(rule.asText()));
        KerberosShortNamer namer = KerberosShortNamer.fromUnparsedRules(request.get("realm").asText(), rules);
        return text -> namer.shortName(KerberosName.parse(text));
    }

    private static Object jaasLine(String text) {
        List<AppConfigurationEntry> entries =
            JaasContext.loadClientContext(Map.of("sasl.jaas.config", new Password(text))).configurationEntries();
        return entries(entries.toArray(new AppConfigurationEntry[0]));
    }

    private static ArrayNode entries(AppConfigurationEntry[] found) {
        ArrayNode modules = Lines.JSON.createArrayNode();
        for (AppConfigurationEntry entry : found) {
            ObjectNode module = modules.addObject();
            module.put("name", entry.getLoginModuleName());
            module.put("flag", entry.getControlFlag().toString());
            module.set("options", Lines.JSON.valueToTree(entry.getOptions()));
        }
        return modules;
    }
}
