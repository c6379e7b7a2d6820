import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.avro.NameValidator;
import org.apache.avro.Schema;
import org.apache.avro.SchemaCompatibility;

/** What Java's Avro makes of schemas. A line asks {schema, references} or {reader, writer}; a line answers. */
public final class AvroOracle {
  private static final ObjectMapper JSON = new ObjectMapper();

  public static void main(String[] args) throws Exception {
    PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      JsonNode asked = JSON.readTree(line);
      ObjectNode answer = JSON.createObjectNode();
      try {
        if (asked.has("schema")) {
          answer.put("text", text(asked));
        } else {
          answer.set("found", found(asked));
        }
      } catch (RuntimeException error) {
        answer.put("refused", String.valueOf(error.getMessage()));
      }
      out.println(JSON.writeValueAsString(answer));
    }
  }

  private static String text(JsonNode asked) {
    Schema.Parser parser = new Schema.Parser(NameValidator.STRICT_VALIDATOR);
    List<Schema> references = new ArrayList<>();
    for (JsonNode reference : asked.path("references")) {
      references.add(parser.parse(reference.textValue()));
    }
    return parser.parse(asked.get("schema").textValue()).toString(references, false);
  }

  private static ArrayNode found(JsonNode asked) {
    Schema reader = new Schema.Parser().parse(asked.get("reader").textValue());
    Schema writer = new Schema.Parser().parse(asked.get("writer").textValue());
    ArrayNode found = JSON.createArrayNode();
    for (SchemaCompatibility.Incompatibility one :
        SchemaCompatibility.checkReaderWriterCompatibility(reader, writer).getResult().getIncompatibilities()) {
      found.addArray().add(one.getType().name()).add(one.getLocation()).add(one.getMessage());
    }
    return found;
  }
}
