package icefield.judge;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.AppendFiles;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.FileContent;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.MetadataColumns;
import org.apache.iceberg.MetricsConfig;
import org.apache.iceberg.PartitionKey;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.RowDelta;
import org.apache.iceberg.Schema;
import org.apache.iceberg.StaticTableOperations;
import org.apache.iceberg.StructLike;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.data.BaseDeleteLoader;
import org.apache.iceberg.data.GenericDeleteFilter;
import org.apache.iceberg.data.GenericRecord;
import org.apache.iceberg.data.IcebergGenerics;
import org.apache.iceberg.data.IdentityPartitionConverters;
import org.apache.iceberg.data.InternalRecordWrapper;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.deletes.BaseDVFileWriter;
import org.apache.iceberg.deletes.EqualityDeleteWriter;
import org.apache.iceberg.deletes.PositionDelete;
import org.apache.iceberg.deletes.PositionDeleteWriter;
import org.apache.iceberg.encryption.EncryptedOutputFile;
import org.apache.iceberg.expressions.Expression;
import org.apache.iceberg.expressions.ExpressionParser;
import org.apache.iceberg.formats.FormatModelRegistry;
import org.apache.iceberg.hadoop.HadoopFileIO;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.DataWriter;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFileFactory;
import org.apache.iceberg.jdbc.JdbcCatalog;
import org.apache.iceberg.types.TypeUtil;
import org.apache.iceberg.types.Types;
import org.apache.iceberg.util.PartitionUtil;

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
        case "readCurrent":
          made.set("rows", readCurrent(request));
          break;
        case "create":
          Tables.create(request);
          break;
        case "append":
          append(request);
          break;
        case "evolve":
          evolve(request);
          break;
        case "delete":
          delete(request);
          break;
        case "deleteEqual":
          deleteEqual(request);
          break;
        case "rewriteManifests":
          made.put("manifests", rewriteManifests(request));
          break;
        case "partitionStats":
          made.setAll(Statistics.partitions(request));
          break;
        case "sketches":
          made.set("sketches", Statistics.sketches(request));
          break;
        case "jdbc":
          made.set("names", jdbc(request));
          break;
        case "keyMetadata":
          Encryption.keyMetadata(request, made);
          break;
        case "encrypt":
          Encryption.encrypt(request);
          break;
        case "decrypt":
          made.put("data", HexFormat.of().formatHex(Encryption.decrypt(request)));
          break;
        default:
          throw new IllegalArgumentException("an unknown request");
      }
    } catch (Exception | LinkageError error) {
      StringBuilder said = new StringBuilder();
      for (Throwable each = error; each != null; each = each.getCause()) {
        said.append(each).append("; ");
      }
      made.put("error", said.toString());
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
    Schema schema = table.schema();
    if (request.path("lineage").booleanValue()) {
      schema = TypeUtil.join(schema, new Schema(MetadataColumns.ROW_ID, MetadataColumns.LAST_UPDATED_SEQUENCE_NUMBER));
      scan = scan.project(schema);
    }
    ArrayNode rows = MAPPER.createArrayNode();
    try (CloseableIterable<Record> records = scan.build()) {
      for (Record record : records) {
        rows.add(Values.structToJson(schema.asStruct(), record));
      }
    }
    return rows;
  }

  /** Rows of the current snapshot of a table, whose files may be encrypted. */
  private static ArrayNode readCurrent(JsonNode request) throws Exception {
    Table table = Tables.load(request);
    FileIO io = table.io();
    Schema schema = table.schema();
    ArrayNode rows = MAPPER.createArrayNode();
    try (CloseableIterable<FileScanTask> planned = table.newScan().planFiles()) {
      for (FileScanTask task : planned) {
        GenericDeleteFilter deletes =
            new GenericDeleteFilter(io, task, schema, schema) {
              @Override
              protected InputFile loadInputFile(DeleteFile file) {
                return io.newInputFile(file); // the class above would read it as if it were plain
              }
            };
        CloseableIterable<Record> records =
            FormatModelRegistry.<Record, Schema>readBuilder(
                    task.file().format(), Record.class, io.newInputFile(task.file()))
                .project(deletes.requiredSchema())
                .idToConstant(PartitionUtil.constantsMap(task, IdentityPartitionConverters::convertConstant))
                .split(task.start(), task.length())
                .build();
        try (CloseableIterable<Record> kept = deletes.filter(records)) {
          kept.forEach(record -> rows.add(Values.structToJson(schema.asStruct(), record)));
        }
      }
    }
    return rows;
  }

  /** Writes rows, one file a partition value, in the format that is named. */
  private static void append(JsonNode request) throws Exception {
    Table table = Tables.load(request);
    AppendFiles append = table.newAppend();
    for (DataFile file : written(table, formatOf(request), request.get("rows"))) {
      append.appendFile(file);
    }
    append.commit();
  }

  private static FileFormat formatOf(JsonNode request) {
    return FileFormat.fromString(request.get("format").textValue());
  }

  private static List<DataFile> written(Table table, FileFormat format, JsonNode rows) throws Exception {
    Types.StructType struct = table.schema().asStruct();
    Map<PartitionKey, List<Record>> groups = new HashMap<>();
    InternalRecordWrapper wrapper = new InternalRecordWrapper(struct);
    PartitionKey key = new PartitionKey(table.spec(), table.schema());
    for (JsonNode row : rows) {
      GenericRecord record = Values.structFromJson(struct, row);
      key.partition(wrapper.wrap(record));
      groups.computeIfAbsent(key.copy(), made -> new ArrayList<>()).add(record);
    }
    OutputFileFactory files = OutputFileFactory.builderFor(table, 1, 1).format(format).build();
    List<DataFile> made = new ArrayList<>();
    for (Map.Entry<PartitionKey, List<Record>> group : groups.entrySet()) {
      EncryptedOutputFile file = files.newOutputFile(group.getKey());
      DataWriter<Record> writer =
          FormatModelRegistry.<Record, Schema>dataWriteBuilder(format, Record.class, file)
              .schema(table.schema())
              .setAll(table.properties())
              .metricsConfig(MetricsConfig.forTable(table))
              .keyMetadata(file.keyMetadata())
              .spec(table.spec())
              .partition(group.getKey())
              .build();
      try (writer) {
        writer.write(group.getValue());
      }
      made.add(writer.toDataFile());
    }
    return made;
  }

  /**
   * Deletes rows by their positions, {"positions": {path: [position]}}, and adds the "rows" that are given, in one
   * commit: position delete files in version 2, deletion vectors in version 3.
   */
  private static void delete(JsonNode request) throws Exception {
    BaseTable table = Tables.load(request);
    FileFormat format = formatOf(request);
    Map<String, FileScanTask> tasks = new HashMap<>();
    try (CloseableIterable<FileScanTask> planned = table.newScan().planFiles()) {
      planned.forEach(task -> tasks.put(task.file().location(), task));
    }
    RowDelta delta = table.newRowDelta().validateFromSnapshot(table.currentSnapshot().snapshotId());
    delta.validateDeletedFiles().validateNoConflictingDataFiles().validateNoConflictingDeleteFiles();
    if (request.hasNonNull("rows")) {
      written(table, format, request.get("rows")).forEach(delta::addRows);
    }
    if (table.operations().current().formatVersion() > 2) {
      BaseDeleteLoader loader = new BaseDeleteLoader(table.io()::newInputFile);
      OutputFileFactory files = OutputFileFactory.builderFor(table, 1, 1).format(FileFormat.PUFFIN).build();
      BaseDVFileWriter writer =
          new BaseDVFileWriter(
              files,
              path -> {
                List<DeleteFile> deletes =
                    tasks.get(path).deletes().stream()
                        .filter(file -> file.content() == FileContent.POSITION_DELETES)
                        .toList();
                return deletes.isEmpty() ? null : loader.loadPositionDeletes(deletes, path);
              });
      try (writer) {
        eachPosition(request, tasks, (file, spec, position) ->
            writer.delete(file.location(), position, spec, file.partition()));
      }
      writer.result().deleteFiles().forEach(delta::addDeletes);
      writer.result().rewrittenDeleteFiles().forEach(delta::removeDeletes);
      delta.validateDataFilesExist(writer.result().referencedDataFiles());
    } else {
      OutputFileFactory files = OutputFileFactory.builderFor(table, 1, 1).format(format).build();
      Map<String, PositionDeleteWriter<Record>> writers = new HashMap<>();
      eachPosition(request, tasks, (file, spec, position) -> {
        PositionDeleteWriter<Record> writer =
            writers.computeIfAbsent(file.location(), path ->
                positionWriter(files.newOutputFile(spec, file.partition()), format, spec, file.partition()));
        writer.write(PositionDelete.<Record>create().set(file.location(), position));
      });
      for (PositionDeleteWriter<Record> writer : writers.values()) {
        writer.close();
        delta.addDeletes(writer.toDeleteFile());
        delta.validateDataFilesExist(writer.referencedDataFiles());
      }
    }
    delta.commit();
  }

  private static PositionDeleteWriter<Record> positionWriter(
      EncryptedOutputFile file, FileFormat format, PartitionSpec spec, StructLike partition) {
    try {
      return FormatModelRegistry.<Record>positionDeleteWriteBuilder(format, file)
          .keyMetadata(file.keyMetadata())
          .spec(spec)
          .partition(partition)
          .build();
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  private interface AtPosition {
    void accept(DataFile file, PartitionSpec spec, long position);
  }

  private static void eachPosition(JsonNode request, Map<String, FileScanTask> tasks, AtPosition each) {
    request.get("positions").fields().forEachRemaining(
        entry -> {
          FileScanTask task = tasks.get(entry.getKey());
          entry.getValue().forEach(position -> each.accept(task.file(), task.spec(), position.longValue()));
        });
  }

  /** Deletes the rows that have the values of a row of "rows" in the columns "names"; of tables without partitions. */
  private static void deleteEqual(JsonNode request) throws Exception {
    Table table = Tables.load(request);
    FileFormat format = formatOf(request);
    List<String> names = new ArrayList<>();
    request.get("names").forEach(name -> names.add(name.textValue()));
    Schema keys = table.schema().select(names);
    int[] ids = keys.columns().stream().mapToInt(Types.NestedField::fieldId).toArray();
    EncryptedOutputFile file =
        OutputFileFactory.builderFor(table, 1, 1).format(format).build().newOutputFile();
    EqualityDeleteWriter<Record> writer =
        FormatModelRegistry.<Record, Schema>equalityDeleteWriteBuilder(format, Record.class, file)
            .schema(keys)
            .equalityFieldIds(ids)
            .keyMetadata(file.keyMetadata())
            .spec(table.spec())
            .build();
    try (writer) {
      for (JsonNode row : request.get("rows")) {
        writer.write(Values.structFromJson(keys.asStruct(), row));
      }
    }
    table.newRowDelta().addDeletes(writer.toDeleteFile()).commit();
  }

  /** Clusters the entries of data manifests by partition, and gives how many manifests of data the table has then. */
  private static int rewriteManifests(JsonNode request) {
    Table table = Tables.load(request);
    table.rewriteManifests().clusterBy(file -> file.partition().toString()).commit();
    table.refresh();
    return table.currentSnapshot().dataManifests(table.io()).size();
  }

  /**
   * The views of a namespace in a JDBC catalog with views; first those of "create" are created, in a namespace that is
   * created too, each of one column.
   */
  private static ArrayNode jdbc(JsonNode request) throws Exception {
    Namespace namespace = Namespace.of(request.get("namespace").textValue());
    ArrayNode names = MAPPER.createArrayNode();
    try (JdbcCatalog catalog = new JdbcCatalog()) {
      catalog.setConf(CONF);
      catalog.initialize(
          request.get("catalog").textValue(),
          Map.of(
              "uri", request.get("uri").textValue(),
              "warehouse", request.get("warehouse").textValue(),
              "jdbc.schema-version", "V1"));
      if (!catalog.namespaceExists(namespace)) {
        catalog.createNamespace(namespace);
      }
      request.path("create").forEach(
          name ->
              catalog
                  .buildView(TableIdentifier.of(namespace, name.textValue()))
                  .withSchema(new Schema(Types.NestedField.required(1, "one", Types.IntegerType.get())))
                  .withDefaultNamespace(namespace)
                  .withQuery("spark", "SELECT 1 AS one")
                  .create());
      catalog.listViews(namespace).forEach(view -> names.add(view.name()));
    }
    return names;
  }

  /** Renames and promotes columns: {"rename": {old: new}, "promote": {name: type}, "drop": [name]}. */
  private static void evolve(JsonNode request) {
    Table table = Tables.load(request);
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
