package icefield.judge;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import javax.crypto.Cipher;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;
import java.security.SecureRandom;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.AppendFiles;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.FileContent;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.MetricsConfig;
import org.apache.iceberg.PartitionKey;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.PartitionSpecParser;
import org.apache.iceberg.RowDelta;
import org.apache.iceberg.Schema;
import org.apache.iceberg.SchemaParser;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.data.BaseDeleteLoader;
import org.apache.iceberg.data.GenericDeleteFilter;
import org.apache.iceberg.data.GenericRecord;
import org.apache.iceberg.data.IdentityPartitionConverters;
import org.apache.iceberg.data.InternalRecordWrapper;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.deletes.BaseDVFileWriter;
import org.apache.iceberg.deletes.EqualityDeleteWriter;
import org.apache.iceberg.encryption.AesGcmInputFile;
import org.apache.iceberg.encryption.AesGcmOutputFile;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.encryption.EncryptedOutputFile;
import org.apache.iceberg.encryption.EncryptingFileIO;
import org.apache.iceberg.encryption.EncryptionManager;
import org.apache.iceberg.encryption.EncryptionUtil;
import org.apache.iceberg.encryption.KeyManagementClient;
import org.apache.iceberg.encryption.NativeEncryptionKeyMetadata;
import org.apache.iceberg.encryption.StandardEncryptionManager;
import org.apache.iceberg.formats.FormatModelRegistry;
import org.apache.iceberg.hadoop.HadoopFileIO;
import org.apache.iceberg.hadoop.HadoopTables;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.DataWriter;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.LocationProvider;
import org.apache.iceberg.io.OutputFileFactory;
import org.apache.iceberg.io.SeekableInputStream;
import org.apache.iceberg.types.Types;
import org.apache.iceberg.util.PartitionUtil;

/** Encrypted tables of Hadoop's layout: answers requests, a JSON object a line, as Judge does. */
public final class EncryptionJudge {
  private static final ObjectMapper MAPPER = new ObjectMapper();
  private static final Configuration CONF = new Configuration();
  private static final HexFormat HEX = HexFormat.of();

  private EncryptionJudge() {}

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
        case "create" -> create(request);
        case "append" -> append(request);
        case "delete" -> delete(request);
        case "deleteEqual" -> deleteEqual(request);
        case "read" -> made.set("rows", read(request));
        case "rewriteManifests" -> rewriteManifests(request);
        case "keyMetadata" -> keyMetadata(request, made);
        case "encrypt" -> encrypt(request);
        case "decrypt" -> made.put("data", HEX.formatHex(decrypt(request)));
        default -> throw new IllegalArgumentException("an unknown request");
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

  /** The local keystore of Icefield. */
  private static final class Keystore implements KeyManagementClient {
    private final JsonNode keys;

    Keystore(String path) throws Exception {
      this.keys = MAPPER.readTree(new File(path)).get("keys");
    }

    @Override
    public ByteBuffer wrapKey(ByteBuffer key, String id) {
      String version = keys.get(id).get("current").textValue();
      byte[] name = version.getBytes(StandardCharsets.UTF_8);
      byte[] nonce = new byte[12];
      new SecureRandom().nextBytes(nonce);
      byte[] sealed = run(Cipher.ENCRYPT_MODE, id, version, nonce, bytes(key));
      return ByteBuffer.allocate(1 + name.length + 12 + sealed.length)
          .put((byte) name.length).put(name).put(nonce).put(sealed).flip();
    }

    @Override
    public ByteBuffer unwrapKey(ByteBuffer wrapped, String id) {
      ByteBuffer left = wrapped.duplicate();
      byte[] name = new byte[left.get()];
      left.get(name);
      byte[] nonce = new byte[12];
      left.get(nonce);
      String version = new String(name, StandardCharsets.UTF_8);
      return ByteBuffer.wrap(run(Cipher.DECRYPT_MODE, id, version, nonce, bytes(left)));
    }

    @Override
    public void initialize(Map<String, String> properties) {}

    private byte[] run(int mode, String id, String version, byte[] nonce, byte[] data) {
      try {
        byte[] master = Base64.getDecoder().decode(keys.get(id).get("versions").get(version).textValue());
        Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
        cipher.init(mode, new SecretKeySpec(master, "AES"), new GCMParameterSpec(128, nonce));
        cipher.updateAAD(id.getBytes(StandardCharsets.UTF_8));
        return cipher.doFinal(data);
      } catch (Exception error) {
        throw new IllegalStateException(error);
      }
    }
  }

  private static byte[] bytes(ByteBuffer buffer) {
    byte[] found = new byte[buffer.remaining()];
    buffer.duplicate().get(found);
    return found;
  }

  /** The operations of Hadoop's tables, with keys as HiveTableOperations adds them. */
  private static final class Operations implements TableOperations {
    private final TableOperations tables;
    private final KeyManagementClient client;
    private EncryptionManager manager;

    Operations(TableOperations tables, KeyManagementClient client) {
      this.tables = tables;
      this.client = client;
    }

    @Override
    public TableMetadata current() {
      return tables.current();
    }

    @Override
    public TableMetadata refresh() {
      manager = null;
      return tables.refresh();
    }

    @Override
    public void commit(TableMetadata base, TableMetadata metadata) {
      TableMetadata.Builder builder = TableMetadata.buildFrom(metadata);
      for (EncryptedKey key : EncryptionUtil.encryptionKeys(encryption()).values()) {
        builder.addEncryptionKey(key);
      }
      tables.commit(base, builder.build());
    }

    @Override
    public FileIO io() {
      return EncryptingFileIO.combine(tables.io(), encryption());
    }

    @Override
    public EncryptionManager encryption() {
      if (manager == null) {
        TableMetadata metadata = current();
        manager = EncryptionUtil.createEncryptionManager(metadata.encryptionKeys(), metadata.properties(), client);
      }
      return manager;
    }

    @Override
    public String metadataFileLocation(String fileName) {
      return tables.metadataFileLocation(fileName);
    }

    @Override
    public LocationProvider locationProvider() {
      return tables.locationProvider();
    }
  }

  private static BaseTable load(JsonNode request) throws Exception {
    String location = request.get("location").textValue();
    BaseTable table = (BaseTable) new HadoopTables(CONF).load(location);
    Keystore client = new Keystore(request.get("keystore").textValue());
    return new BaseTable(new Operations(table.operations(), client), location);
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

  private static FileFormat formatOf(JsonNode request) {
    return FileFormat.fromString(request.get("format").textValue());
  }

  private static void append(JsonNode request) throws Exception {
    Table table = load(request);
    AppendFiles append = table.newAppend();
    written(table, formatOf(request), request.get("rows")).forEach(append::appendFile);
    append.commit();
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

  /** Deletes rows by their positions, {"positions": {path: [position]}}, with deletion vectors. */
  private static void delete(JsonNode request) throws Exception {
    BaseTable table = load(request);
    EncryptingFileIO io = (EncryptingFileIO) table.io();
    Map<String, FileScanTask> tasks = new HashMap<>();
    try (CloseableIterable<FileScanTask> planned = table.newScan().planFiles()) {
      planned.forEach(task -> tasks.put(task.file().location(), task));
    }
    RowDelta delta = table.newRowDelta().validateFromSnapshot(table.currentSnapshot().snapshotId());
    BaseDeleteLoader loader = new BaseDeleteLoader(io::newInputFile);
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
      request.get("positions").fields().forEachRemaining(
          entry -> {
            FileScanTask task = tasks.get(entry.getKey());
            entry.getValue().forEach(
                position ->
                    writer.delete(entry.getKey(), position.longValue(), task.spec(), task.file().partition()));
          });
    }
    writer.result().deleteFiles().forEach(delta::addDeletes);
    writer.result().rewrittenDeleteFiles().forEach(delta::removeDeletes);
    delta.commit();
  }

  /** Deletes the rows that have the values of a row of "rows" in the columns "names"; of tables without partitions. */
  private static void deleteEqual(JsonNode request) throws Exception {
    BaseTable table = load(request);
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

  private static ArrayNode read(JsonNode request) throws Exception {
    BaseTable table = load(request);
    EncryptingFileIO io = (EncryptingFileIO) table.io();
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

  private static void rewriteManifests(JsonNode request) throws Exception {
    load(request).rewriteManifests().clusterBy(file -> "all").commit();
  }

  /** Parses key metadata, and encodes it again with another file length. */
  private static void keyMetadata(JsonNode request, ObjectNode made) {
    ByteBuffer given = ByteBuffer.wrap(HEX.parseHex(request.get("data").textValue()));
    made.put("again", HEX.formatHex(bytes(EncryptionUtil.setFileLength(given, request.get("length").longValue()))));
    StandardEncryptionManager manager =
        new StandardEncryptionManager(List.of(), "none", request.get("bytes").intValue(), new KeyManagementClient() {
          @Override
          public ByteBuffer wrapKey(ByteBuffer key, String id) {
            throw new UnsupportedOperationException();
          }

          @Override
          public ByteBuffer unwrapKey(ByteBuffer wrapped, String id) {
            throw new UnsupportedOperationException();
          }

          @Override
          public void initialize(Map<String, String> properties) {}
        });
    NativeEncryptionKeyMetadata own =
        manager.encrypt(new HadoopFileIO(CONF).newOutputFile("/nowhere")).keyMetadata();
    made.put("own", HEX.formatHex(bytes(own.buffer())));
    made.put("key", HEX.formatHex(bytes(own.encryptionKey())));
    made.put("prefix", HEX.formatHex(bytes(own.aadPrefix())));
  }

  private static void encrypt(JsonNode request) throws Exception {
    byte[] data = HEX.parseHex(request.get("data").textValue());
    try (OutputStream stream =
        new AesGcmOutputFile(
                new HadoopFileIO(CONF).newOutputFile(request.get("path").textValue()),
                HEX.parseHex(request.get("key").textValue()),
                HEX.parseHex(request.get("prefix").textValue()))
            .create()) {
      stream.write(data);
    }
  }

  private static byte[] decrypt(JsonNode request) throws Exception {
    InputFile file =
        new AesGcmInputFile(
            new HadoopFileIO(CONF).newInputFile(request.get("path").textValue()),
            HEX.parseHex(request.get("key").textValue()),
            HEX.parseHex(request.get("prefix").textValue()),
            request.get("length").longValue());
    try (SeekableInputStream stream = file.newStream()) {
      stream.seek(request.path("from").longValue());
      return stream.readAllBytes();
    }
  }
}
