package icefield.judge;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.PartitionSpecParser;
import org.apache.iceberg.Schema;
import org.apache.iceberg.SchemaParser;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.encryption.EncryptingFileIO;
import org.apache.iceberg.encryption.EncryptionManager;
import org.apache.iceberg.encryption.EncryptionUtil;
import org.apache.iceberg.encryption.KeyManagementClient;
import org.apache.iceberg.hadoop.HadoopTables;
import org.apache.iceberg.hive.HiveCatalog;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.LocationProvider;

/**
 * The tables of requests: at a "location" in Hadoop's layout, or a "table" of the Hive Metastore at a "uri"; with the
 * "keystore" of their master keys if they are encrypted.
 */
final class Tables {
  private static final Configuration CONF = new Configuration();
  private static final Map<String, HiveCatalog> CATALOGS = new HashMap<>();

  private Tables() {}

  static BaseTable load(JsonNode request) {
    if (request.hasNonNull("uri")) {
      return (BaseTable) catalog(request).loadTable(TableIdentifier.parse(request.get("table").textValue()));
    }
    String location = request.get("location").textValue();
    BaseTable table = (BaseTable) new HadoopTables(CONF).load(location);
    if (!request.hasNonNull("keystore")) {
      return table;
    }
    Keystore client = new Keystore();
    client.initialize(Map.of(Keystore.PATH, request.get("keystore").textValue()));
    return new BaseTable(new EncryptedOperations(table.operations(), client), location);
  }

  static void create(JsonNode request) {
    Schema schema = SchemaParser.fromJson(request.get("schema").toString());
    PartitionSpec spec =
        request.hasNonNull("spec")
            ? PartitionSpecParser.fromJson(schema, request.get("spec").toString())
            : PartitionSpec.unpartitioned();
    Map<String, String> properties = new HashMap<>();
    request.path("properties").fields().forEachRemaining(e -> properties.put(e.getKey(), e.getValue().textValue()));
    if (request.hasNonNull("uri")) {
      catalog(request).createTable(TableIdentifier.parse(request.get("table").textValue()), schema, spec, properties);
    } else {
      new HadoopTables(CONF).create(schema, spec, properties, request.get("location").textValue());
    }
  }

  private static HiveCatalog catalog(JsonNode request) {
    String uri = request.get("uri").textValue();
    String keystore = request.get("keystore").textValue();
    return CATALOGS.computeIfAbsent(
        uri + keystore,
        made -> {
          HiveCatalog catalog = new HiveCatalog();
          catalog.setConf(CONF);
          catalog.initialize(
              "hive", Map.of("uri", uri, Keystore.PATH, keystore, "encryption.kms-impl", Keystore.class.getName()));
          return catalog;
        });
  }

  /** The operations of Hadoop's tables, with keys as HiveTableOperations adds them. */
  private static final class EncryptedOperations implements TableOperations {
    private final TableOperations tables;
    private final KeyManagementClient client;
    private EncryptionManager manager;

    EncryptedOperations(TableOperations tables, KeyManagementClient client) {
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
}
