package icefield.judge;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.AppendFiles;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.PartitionKey;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.PartitionSpecParser;
import org.apache.iceberg.Schema;
import org.apache.iceberg.SchemaParser;
import org.apache.iceberg.StaticTableOperations;
import org.apache.iceberg.Table;
import org.apache.iceberg.data.GenericAppenderFactory;
import org.apache.iceberg.data.GenericRecord;
import org.apache.iceberg.data.IcebergGenerics;
import org.apache.iceberg.data.InternalRecordWrapper;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.expressions.Expression;
import org.apache.iceberg.expressions.ExpressionParser;
import org.apache.iceberg.hadoop.HadoopFileIO;
import org.apache.iceberg.hadoop.HadoopTables;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.DataWriter;
import org.apache.iceberg.io.OutputFileFactory;
import org.apache.iceberg.types.Types;

/** Answers requests, a JSON object a line, until its input ends. A failure is an answer with the key "error". */
public final class Judge {
  private static final ObjectMapper MAPPER = new ObjectMapper();
  private static final Configuration CONF = new Configuration();

  private Judge() {}

  public static void main(String[] args) throws Exception {
    PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    System.setOut(System.err); // what libraries print must not come between the answers
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      out.println(MAPPER.writeValueAsString(answer(line)));
    }
  }

  private static ObjectNode answer(String line) {
    ObjectNode made = MAPPER.createObjectNode();
    try {
      JsonNode request = MAPPER.readTree(line);
      switch (request.get("do").textValue()) {
        case "read":
          made.set("rows", read(request));
          break;
        case "create":
          create(request);
          break;
        case "append":
          append(request);
          break;
        case "evolve":
          evolve(request);
          break;
        default:
          throw new IllegalArgumentException("an unknown request");
      }
    } catch (Exception | LinkageError error) {
      made.put("error", String.valueOf(error));
    }
    return made;
  }

  /** Rows of the table whose metadata file is named, with a filter in the JSON form of expressions if there is one. */
  private static ArrayNode read(JsonNode request) throws Exception {
    String location = request.get("metadata").textValue();
    Table table = new BaseTable(new StaticTableOperations(location, new HadoopFileIO(CONF)), location);
    IcebergGenerics.ScanBuilder scan = IcebergGenerics.read(table);
    if (request.hasNonNull("filter")) {
      Expression filter = ExpressionParser.fromJson(request.get("filter").toString(), table.schema());
      scan = scan.where(filter);
    }
    ArrayNode rows = MAPPER.createArrayNode();
    try (CloseableIterable<Record> records = scan.build()) {
      for (Record record : records) {
        rows.add(Values.structToJson(table.schema().asStruct(), record));
      }
    }
    return rows;
  }

  private static void create(JsonNode request) {
    Schema schema = SchemaParser.fromJson(request.get("schema").toString());
    PartitionSpec spec =
        request.hasNonNull("spec")
            ? PartitionSpecParser.fromJson(schema, request.get("spec").toString())
            : PartitionSpec.unpartitioned();
    Map<String, String> properties = new HashMap<>();
    request.path("properties").fields().forEachRemaining(e -> properties.put(e.getKey(), e.getValue().textValue()));
    new HadoopTables(CONF).create(schema, spec, properties, request.get("location").textValue());
  }

  /** Writes rows, one file a partition value, in the format that is named. */
  private static void append(JsonNode request) throws Exception {
    Table table = new HadoopTables(CONF).load(request.get("location").textValue());
    FileFormat format = FileFormat.fromString(request.get("format").textValue());
    Types.StructType struct = table.schema().asStruct();
    Map<PartitionKey, List<Record>> groups = new HashMap<>();
    InternalRecordWrapper wrapper = new InternalRecordWrapper(struct);
    PartitionKey key = new PartitionKey(table.spec(), table.schema());
    for (JsonNode row : request.get("rows")) {
      GenericRecord record = Values.structFromJson(struct, row);
      key.partition(wrapper.wrap(record));
      groups.computeIfAbsent(key.copy(), made -> new ArrayList<>()).add(record);
    }
    GenericAppenderFactory factory = new GenericAppenderFactory(table.schema(), table.spec());
    factory.setAll(table.properties());
    OutputFileFactory files = OutputFileFactory.builderFor(table, 1, 1).format(format).build();
    AppendFiles append = table.newAppend();
    for (Map.Entry<PartitionKey, List<Record>> group : groups.entrySet()) {
      DataWriter<Record> writer =
          factory.newDataWriter(files.newOutputFile(group.getKey()), format, group.getKey());
      try (writer) {
        writer.write(group.getValue());
      }
      DataFile file = writer.toDataFile();
      append.appendFile(file);
    }
    append.commit();
  }

  /** Renames and promotes columns: {"rename": {old: new}, "promote": {name: type}, "drop": [name]}. */
  private static void evolve(JsonNode request) {
    Table table = new HadoopTables(CONF).load(request.get("location").textValue());
    var update = table.updateSchema();
    request.path("promote").fields().forEachRemaining(
        e ->
            update.updateColumn(
                e.getKey(), Types.fromPrimitiveString(e.getValue().textValue())));
    request.path("rename").fields().forEachRemaining(e -> update.renameColumn(e.getKey(), e.getValue().textValue()));
    request.path("drop").forEach(name -> update.deleteColumn(name.textValue()));
    request.path("add").fields().forEachRemaining(
        e -> update.addColumn(e.getKey(), Types.fromPrimitiveString(e.getValue().textValue())));
    update.commit();
  }
}
