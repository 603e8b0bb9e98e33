import java.util.Map;
import java.util.Optional;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.SupportsCatalogOptions;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The format "iceberg" of readers and writers: its path is the name of a table of an attached catalog. */
public class NamedTables implements SupportsCatalogOptions {
  public Identifier extractIdentifier(CaseInsensitiveStringMap options) {
    String[] name = name(options);
    int start = catalogOf(name) == null ? 0 : 1;
    String[] namespace = new String[name.length - start - 1];
    System.arraycopy(name, start, namespace, 0, namespace.length);
    if (start == 0 && name.length == 1) namespace = manager().currentNamespace();
    return Identifier.of(namespace, name[name.length - 1]);
  }

  public String extractCatalog(CaseInsensitiveStringMap options) {
    String[] name = name(options);
    String named = catalogOf(name);
    if (named != null) return named;
    if (!(manager().currentCatalog() instanceof IcefieldCatalog))
      throw new IllegalArgumentException(
          "the table " + String.join(".", name) + " has no catalog: write catalog.namespace.table, or USE a catalog first");
    return manager().currentCatalog().name();
  }

  /** Spark loads the table at the version or time. */
  public Optional extractTimeTravelVersion(CaseInsensitiveStringMap options) {
    return Optional.ofNullable(options.get("versionAsOf"));
  }
  public Optional extractTimeTravelTimestamp(CaseInsensitiveStringMap options) {
    return Optional.ofNullable(options.get("timestampAsOf"));
  }

  private static CatalogManager manager() { return /*SESSION*/.active().sessionState().catalogManager(); }

  private static String catalogOf(String[] name) {
    if (name.length < 2 || !manager().isCatalogRegistered(name[0])) return null;
    return manager().catalog(name[0]) instanceof IcefieldCatalog ? name[0] : null;
  }

  private static String[] name(CaseInsensitiveStringMap options) {
    String path = options.get("path");
    if (path == null) throw new IllegalArgumentException("name the table: load(\"catalog.namespace.table\")");
    if (path.contains("/"))
      throw new IllegalArgumentException("tables are read by name, as catalog.namespace.table, and not by their path: " + path);
    try {
      scala.collection.Seq parts = /*SESSION*/.active().sessionState().sqlParser().parseMultipartIdentifier(path);
      String[] made = new String[parts.size()];
      for (int at = 0; at < made.length; at++) made[at] = (String) parts.apply(at);
      return made;
    } catch (Exception error) {
      throw new IllegalArgumentException("this is no name of a table: " + path);
    }
  }

  /** For streams, whose tables Spark does not ask a catalog for. */
  private Table loaded(CaseInsensitiveStringMap options) {
    Identifier identifier = extractIdentifier(options);
    try {
      return ((TableCatalog) manager().catalog(extractCatalog(options))).loadTable(identifier);
    } catch (NoSuchTableException error) {
      throw new IllegalArgumentException(error.getMessage());
    }
  }
  public StructType inferSchema(CaseInsensitiveStringMap options) { return loaded(options).schema(); }
  public Table getTable(StructType schema, Transform[] partitions, Map properties) {
    return loaded(new CaseInsensitiveStringMap(properties));
  }
}
