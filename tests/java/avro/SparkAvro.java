import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Iterator;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.arrow.vector.ipc.ArrowStreamWriter;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.spark.sql.avro.AvroDataToCatalyst;
import org.apache.spark.sql.avro.AvroSerializer;
import org.apache.spark.sql.avro.CatalystDataToAvro;
import org.apache.spark.sql.avro.SchemaConverters;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.execution.arrow.ArrowWriter;
import org.apache.spark.sql.types.BinaryType$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Spark's own expressions behind to_avro and from_avro, and the reader of Java's Avro, without a session and without jobs.
 *
 * <p>A line asks {"write": [...]}, {"read": [...]} or {"judge": [...]}, a list of cells each; a line answers with a list.
 * Columns travel as Arrow streams, so values are those that Spark exchanges with Python.
 */
public final class SparkAvro {
  private static final ObjectMapper JSON = new ObjectMapper();

  public static void main(String[] args) throws Exception {
    PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      JsonNode asked = JSON.readTree(line);
      ArrayNode answers = JSON.createArrayNode();
      String verb = asked.fieldNames().next();
      for (JsonNode cell : asked.get(verb)) {
        answers.add(verb.equals("write") ? write(cell) : verb.equals("read") ? read(cell) : judge(cell));
      }
      out.println(JSON.writeValueAsString(answers));
    }
  }

  /** {arrow, schemas} → per schema (null: Spark's own) {rows: [bytes, or null, or {error}]}, or {refused}. */
  private static ArrayNode write(JsonNode cell) throws Exception {
    ArrayNode answers = JSON.createArrayNode();
    byte[] stream = Base64.getDecoder().decode(cell.get("arrow").textValue());
    try (ArrowStreamReader reader = new ArrowStreamReader(new ByteArrayInputStream(stream), ArrowUtils.rootAllocator())) {
      VectorSchemaRoot root = reader.getVectorSchemaRoot();
      StructField field = ArrowUtils.fromArrowSchema(root.getSchema()).fields()[0];
      reader.loadNextBatch();
      ColumnVector[] columns = {new ArrowColumnVector(root.getVector(0))};
      for (JsonNode schema : cell.get("schemas")) {
        answers.add(written(field, schema.textValue(), new ColumnarBatch(columns, root.getRowCount()).rowIterator()));
      }
    }
    return answers;
  }

  private static ObjectNode written(StructField field, String text, Iterator<InternalRow> each) {
    ObjectNode answer = JSON.createObjectNode();
    DataType of = field.dataType();
    answer.put("type", of.sql());
    CatalystDataToAvro toAvro;
    try {
      Schema schema =
          text == null
              ? SchemaConverters.toAvroType(of, field.nullable(), "topLevelRecord", "")
              : new Schema.Parser().parse(text);
      answer.put("schema", schema.toString());
      new AvroSerializer(of, schema, field.nullable());
      toAvro = new CatalystDataToAvro(new BoundReference(0, of, field.nullable()), scala.Option.apply(schema.toString()));
    } catch (Throwable error) {
      return answer.put("refused", why(error));
    }
    ArrayNode rows = answer.putArray("rows");
    while (each.hasNext()) {
      try {
        byte[] made = (byte[]) toAvro.eval(each.next());
        rows.add(made == null ? null : Base64.getEncoder().encodeToString(made));
      } catch (Throwable error) {
        rows.addObject().put("error", why(error));
      }
    }
    return answer;
  }

  /** {writer, reader, payloads} → {arrow, errors: {row: why}}, or {refused}. */
  private static ObjectNode read(JsonNode cell) throws Exception {
    ObjectNode answer = JSON.createObjectNode();
    AvroDataToCatalyst fromAvro;
    ArrowWriter made;
    try {
      scala.collection.immutable.Map<String, String> options =
          scala.collection.immutable.Map$.MODULE$.<String, String>empty();
      if (cell.hasNonNull("reader")) {
        options = (scala.collection.immutable.Map<String, String>) options.updated("avroSchema", cell.get("reader").textValue());
      }
      BoundReference input = new BoundReference(0, BinaryType$.MODULE$, true);
      fromAvro = new AvroDataToCatalyst(input, cell.get("writer").textValue(), options);
      answer.put("type", fromAvro.dataType().sql());
      made = ArrowWriter.create(new StructType().add("c", fromAvro.dataType(), true), "UTC", false, false);
    } catch (Throwable error) {
      return answer.put("refused", why(error));
    }
    ObjectNode errors = JSON.createObjectNode();
    int row = 0;
    for (JsonNode payload : cell.get("payloads")) {
      Object value = null;
      try {
        byte[] given = payload.isNull() ? null : Base64.getDecoder().decode(payload.textValue());
        value = fromAvro.eval(new GenericInternalRow(new Object[] {given}));
      } catch (Throwable error) {
        errors.put(Integer.toString(row), why(error));
      }
      made.write(new GenericInternalRow(new Object[] {value}));
      row++;
    }
    made.finish();
    ByteArrayOutputStream to = new ByteArrayOutputStream();
    try (ArrowStreamWriter stream = new ArrowStreamWriter(made.root(), null, to)) {
      stream.writeBatch();
    }
    made.root().close();
    answer.put("arrow", Base64.getEncoder().encodeToString(to.toByteArray()));
    answer.set("errors", errors);
    return answer;
  }

  /** {writer, reader, payloads} → {rows: [bytes left over, or {error}]}, or {refused}. */
  private static ObjectNode judge(JsonNode cell) {
    ObjectNode answer = JSON.createObjectNode();
    Schema writer;
    Schema reader;
    try {
      writer = new Schema.Parser().parse(cell.get("writer").textValue());
      reader = cell.hasNonNull("reader") ? new Schema.Parser().parse(cell.get("reader").textValue()) : writer;
    } catch (Throwable error) {
      return answer.put("refused", why(error));
    }
    ArrayNode rows = answer.putArray("rows");
    for (JsonNode payload : cell.get("payloads")) {
      byte[] given = Base64.getDecoder().decode(payload.textValue());
      try {
        BinaryDecoder decoder = DecoderFactory.get().binaryDecoder(given, null);
        new GenericDatumReader<Object>(writer, reader).read(null, decoder);
        rows.add(decoder.inputStream().available());
      } catch (Throwable error) {
        rows.addObject().put("error", why(error));
      }
    }
    return answer;
  }

  private static String why(Throwable error) {
    StringBuilder text = new StringBuilder();
    for (Throwable each = error; each != null && text.length() < 2000; each = each.getCause()) {
      text.append(text.length() == 0 ? "" : " <- ").append(each);
    }
    return text.toString();
  }
}
