import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Table;
import org.apache.iceberg.aws.glue.GlueCatalog;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.data.GenericRecord;
import org.apache.iceberg.data.IcebergGenerics;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.data.parquet.GenericParquetWriter;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.DataWriter;
import org.apache.iceberg.parquet.Parquet;
import org.apache.iceberg.types.Types;

/** Iceberg's own catalog on the Glue Data Catalog: answers requests, a JSON object a line, until its input ends. */
public final class GlueJudge {
  private static final ObjectMapper MAPPER = new ObjectMapper();
  private static final Schema SCHEMA =
      new Schema(
          Types.NestedField.optional(1, "writer", Types.StringType.get()),
          Types.NestedField.optional(2, "number", Types.LongType.get()));
  private static final GlueCatalog CATALOG = new GlueCatalog();

  private GlueJudge() {}

  public static void main(String[] arguments) throws Exception {
    PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    System.setOut(System.err); // what libraries print must not come between the answers
    CATALOG.setConf(new Configuration());
    CATALOG.initialize(
        "java",
        Map.of(
            "glue.endpoint", arguments[0],
            "warehouse", arguments[1],
            "client.region", "us-east-1",
            "io-impl", "org.apache.iceberg.hadoop.HadoopFileIO"));
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      ObjectNode answer = MAPPER.createObjectNode();
      try {
        answer(MAPPER.readTree(line), answer);
      } catch (Exception | LinkageError error) {
        answer.put("error", String.valueOf(error));
      }
      out.println(MAPPER.writeValueAsString(answer));
    }
  }

  private static void answer(JsonNode request, ObjectNode answer) throws Exception {
    TableIdentifier name = TableIdentifier.parse(request.get("table").textValue());
    switch (request.get("do").textValue()) {
      case "namespace":
        CATALOG.createNamespace(name.namespace(), Map.of("by", "java"));
        break;
      case "create":
        CATALOG.createTable(name, SCHEMA, PartitionSpec.unpartitioned(), Map.of("by", "java"));
        break;
      case "evolve":
        CATALOG
            .loadTable(name)
            .updateSchema()
            .renameColumn("number", "many")
            .addColumn("at", Types.TimestampType.withZone(), "when it was")
            .addColumn("tags", Types.MapType.ofOptional(90, 91, Types.StringType.get(), Types.ListType.ofOptional(92, Types.DecimalType.of(9, 2))))
            .commit();
        break;
      case "drop":
        CATALOG.dropTable(name, request.get("purge").booleanValue());
        break;
      case "append":
        for (JsonNode number : request.get("numbers")) {
          append(CATALOG.loadTable(name), number.longValue());
        }
        break;
      case "rename":
        CATALOG.renameTable(name, TableIdentifier.parse(request.get("to").textValue()));
        break;
      case "list":
        ArrayNode names = answer.putArray("names");
        CATALOG.listTables(name.namespace()).forEach(found -> names.add(found.toString()));
        break;
      case "read":
        read(CATALOG.loadTable(name), answer);
        Map<String, String> properties = CATALOG.loadNamespaceMetadata(Namespace.of(name.namespace().levels()));
        answer.set("namespace", MAPPER.valueToTree(properties));
        break;
      default:
        throw new IllegalArgumentException("an unknown request");
    }
  }

  private static void append(Table table, long number) throws Exception {
    DataWriter<Record> writer =
        Parquet.writeData(table.io().newOutputFile(table.location() + "/data/" + UUID.randomUUID() + ".parquet"))
            .schema(table.schema())
            .createWriterFunc(GenericParquetWriter::create)
            .withSpec(table.spec())
            .build();
    try (writer) {
      Record record = GenericRecord.create(table.schema());
      record.setField("writer", "java");
      record.setField("number", number);
      writer.write(record);
    }
    table.newAppend().appendFile(writer.toDataFile()).commit();
  }

  private static void read(Table table, ObjectNode answer) throws Exception {
    ArrayNode rows = answer.putArray("rows");
    try (CloseableIterable<Record> found = IcebergGenerics.read(table).build()) {
      for (Record record : found) {
        rows.addArray().add((String) record.getField("writer")).add((Long) record.getField("number"));
      }
    }
    answer.set("properties", MAPPER.valueToTree(table.properties()));
    answer.put("uuid", table.uuid().toString());
  }
}
