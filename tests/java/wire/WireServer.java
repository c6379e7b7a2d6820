package ottla;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.Readable;

/**
 * Kafka's generated message classes as a service.
 * {"class": name, "version": n, "items": [{"bytes": base64, "json": value}]} gives for every item the JSON that Kafka reads from our bytes
 * and the bytes that Kafka writes from our JSON, so that both directions are judged by Kafka's own code.
 */
public final class WireServer {
    private record Codec(Constructor<?> decode, Method toJson, Method fromJson) {}

    private static final Map<String, Codec> CODECS = new HashMap<>();

    private WireServer() {}

    public static void main(String[] args) throws Exception {
        Lines.serve(WireServer::check);
    }

    private static Object check(JsonNode request) throws Exception {
        Codec codec = CODECS.get(request.get("class").asText());
        if (codec == null) {
            codec = load(request.get("class").asText());
            CODECS.put(request.get("class").asText(), codec);
        }
        short version = (short) request.get("version").asInt();
        ArrayNode results = Lines.JSON.createArrayNode();
        for (JsonNode item : request.get("items")) {
            ObjectNode result = results.addObject();
            try {
                ByteBufferAccessor bytes = new ByteBufferAccessor(ByteBuffer.wrap(item.get("bytes").binaryValue()));
                Object message = codec.decode.newInstance(bytes, version);
                result.put("left", bytes.remaining());
                result.set("json", (JsonNode) codec.toJson.invoke(null, message, version, true));
                Message ours = (Message) codec.fromJson.invoke(null, item.get("json"), version);
                ByteBuffer encoded = MessageUtil.toByteBufferAccessor(ours, version).buffer();
                byte[] copy = new byte[encoded.remaining()];
                encoded.get(copy);
                result.put("bytes", copy);
            } catch (Exception thrown) {
                result.setAll(Lines.failure(thrown));
            }
        }
        return results;
    }

    private static Codec load(String name) throws Exception {
        Class<?> data = Class.forName(name);
        Class<?> json = Class.forName(name + "JsonConverter");
        return new Codec(
            data.getConstructor(Readable.class, short.class),
            json.getMethod("write", data, short.class, boolean.class),
            json.getMethod("read", JsonNode.class, short.class));
    }
}
