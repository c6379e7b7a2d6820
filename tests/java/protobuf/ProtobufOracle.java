import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.protobuf.ByteString;
import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.EnumValueDescriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.Message;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Google's Protobuf for Java: what it reads of payloads, and what it writes.
 *
 * <p>A line asks {files, read: [{message, payloads}], write: [{message, values}]}, with files as serialized
 * FileDescriptorProtos, those that are imported first; a line answers {read, written}. A value is an object of the
 * fields that are set: integers as decimal digits, floating points as the bits of a double, bytes as base64, enums as
 * numbers, maps as lists of entries. What cannot be read is {error}.
 */
public final class ProtobufOracle {
  private static final ObjectMapper JSON = new ObjectMapper();

  public static void main(String[] args) throws Exception {
    PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      JsonNode asked = JSON.readTree(line);
      Map<String, Descriptor> messages = messages(asked.get("files"));
      ObjectNode answer = JSON.createObjectNode();
      ArrayNode read = answer.putArray("read");
      for (JsonNode cell : asked.path("read")) {
        ArrayNode rows = read.addArray();
        for (JsonNode payload : cell.get("payloads")) {
          rows.add(read(messages.get(cell.get("message").textValue()), bytes(payload)));
        }
      }
      ArrayNode written = answer.putArray("written");
      for (JsonNode cell : asked.path("write")) {
        ArrayNode rows = written.addArray();
        for (JsonNode value : cell.get("values")) {
          rows.add(text(build(messages.get(cell.get("message").textValue()), value).toByteArray()));
        }
      }
      out.println(JSON.writeValueAsString(answer));
    }
  }

  private static Map<String, Descriptor> messages(JsonNode files) throws Exception {
    Map<String, FileDescriptor> built = new HashMap<>();
    Map<String, Descriptor> found = new HashMap<>();
    for (JsonNode each : files) {
      FileDescriptorProto proto = FileDescriptorProto.parseFrom(bytes(each));
      FileDescriptor[] imported = proto.getDependencyList().stream().map(built::get).toArray(FileDescriptor[]::new);
      FileDescriptor file = FileDescriptor.buildFrom(proto, imported);
      built.put(proto.getName(), file);
      file.getMessageTypes().forEach(message -> found.put(message.getFullName(), message));
    }
    return found;
  }

  private static JsonNode read(Descriptor of, byte[] payload) {
    try {
      return tree(DynamicMessage.parseFrom(of, payload));
    } catch (Exception error) {
      return JSON.createObjectNode().put("error", String.valueOf(error.getMessage()));
    }
  }

  private static ObjectNode tree(Message message) {
    ObjectNode made = JSON.createObjectNode();
    message
        .getAllFields()
        .forEach(
            (field, value) -> {
              if (field.isRepeated()) {
                ArrayNode each = made.putArray(field.getName());
                ((List<?>) value).forEach(one -> each.add(leaf(field, one)));
              } else {
                made.set(field.getName(), leaf(field, value));
              }
            });
    return made;
  }

  private static JsonNode leaf(FieldDescriptor field, Object value) {
    switch (field.getType()) {
      case UINT32:
      case FIXED32:
        return JSON.getNodeFactory().textNode(Integer.toUnsignedString((Integer) value));
      case UINT64:
      case FIXED64:
        return JSON.getNodeFactory().textNode(Long.toUnsignedString((Long) value));
      case FLOAT:
        return bits((Float) value);
      case DOUBLE:
        return bits((Double) value);
      case BOOL:
        return JSON.getNodeFactory().booleanNode((Boolean) value);
      case BYTES:
        return JSON.getNodeFactory().textNode(text(((ByteString) value).toByteArray()));
      case ENUM:
        return JSON.getNodeFactory().textNode(Integer.toString(((EnumValueDescriptor) value).getNumber()));
      case MESSAGE:
      case GROUP:
        return tree((Message) value);
      default:
        return JSON.getNodeFactory().textNode(value.toString());
    }
  }

  private static JsonNode bits(double value) {
    return JSON.getNodeFactory().textNode(Long.toString(Double.doubleToRawLongBits(value)));
  }

  private static DynamicMessage build(Descriptor of, JsonNode tree) {
    DynamicMessage.Builder made = DynamicMessage.newBuilder(of);
    for (FieldDescriptor field : of.getFields()) {
      JsonNode value = tree.get(field.getName());
      if (value == null) {
        continue;
      }
      if (field.isRepeated()) {
        value.forEach(one -> made.addRepeatedField(field, value(field, one)));
      } else {
        made.setField(field, value(field, value));
      }
    }
    return made.build();
  }

  private static Object value(FieldDescriptor field, JsonNode leaf) {
    switch (field.getType()) {
      case UINT32:
      case FIXED32:
        return Integer.parseUnsignedInt(leaf.textValue());
      case UINT64:
      case FIXED64:
        return Long.parseUnsignedLong(leaf.textValue());
      case INT32:
      case SINT32:
      case SFIXED32:
        return Integer.parseInt(leaf.textValue());
      case INT64:
      case SINT64:
      case SFIXED64:
        return Long.parseLong(leaf.textValue());
      case FLOAT:
        return (float) Double.longBitsToDouble(Long.parseLong(leaf.textValue()));
      case DOUBLE:
        return Double.longBitsToDouble(Long.parseLong(leaf.textValue()));
      case BOOL:
        return leaf.booleanValue();
      case BYTES:
        return ByteString.copyFrom(bytes(leaf));
      case ENUM:
        return field.getEnumType().findValueByNumberCreatingIfUnknown(Integer.parseInt(leaf.textValue()));
      case MESSAGE:
      case GROUP:
        return build(field.getMessageType(), leaf);
      default:
        return leaf.textValue();
    }
  }

  private static byte[] bytes(JsonNode text) {
    return Base64.getDecoder().decode(text.textValue());
  }

  private static String text(byte[] data) {
    return Base64.getEncoder().encodeToString(data);
  }
}
