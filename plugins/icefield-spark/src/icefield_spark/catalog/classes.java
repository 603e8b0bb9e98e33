import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiFunction;
import org.apache.spark.Partition;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.NamespaceAlreadyExistsException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.NonEmptyNamespaceException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OverwritePartitionsDynamic;
import org.apache.spark.sql.catalyst.plans.logical.WriteDelta;
import org.apache.spark.sql.connector.catalog.*;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.*;
import org.apache.spark.sql.connector.read.partitioning.KeyGroupedPartitioning;
import org.apache.spark.sql.connector.read.partitioning.Partitioning;
import org.apache.spark.sql.connector.read.partitioning.UnknownPartitioning;
import org.apache.spark.sql.connector.write.*;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.WriteToDataSourceV2;
import org.apache.spark.sql.execution.streaming.sources.MicroBatchWrite;
import org.apache.spark.sql.sources.InsertableRelation;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** Calls into the driver's Python. An object there is a function of the name of a method and one argument. */
public class Python {
  /** What answers for catalogs, by the key that the configuration of a catalog states. */
  public static final Map CATALOGS = new ConcurrentHashMap();

  static final ObjectMapper JSON = new ObjectMapper();

  /** Ask an object for something. A reply that begins with "!" is an error: its kind, a line feed and its message. */
  static Object ask(BiFunction object, String method, Object argument) {
    Object reply = object.apply(method, argument);
    if (reply instanceof String && ((String) reply).startsWith("!")) {
      String text = ((String) reply).substring(1);
      int end = text.indexOf('\n');
      throw new Failure(text.substring(0, end), text.substring(end + 1));
    }
    return reply;
  }

  /** Ask and take the reply for JSON; an error of a user's is one of the kinds that Spark hands on as they are. */
  static Object call(BiFunction object, String method, Object argument) {
    try {
      return ask(object, method, argument);
    } catch (Failure failure) {
      throw failure.asSparks();
    }
  }

  static JsonNode read(Object reply) {
    try {
      return JSON.readTree((String) reply);
    } catch (java.io.IOException error) {
      throw new IllegalStateException(error);
    }
  }

  /** The casts are for Janino, which takes a bridge method of an older return type. */
  static JsonNode at(JsonNode node, String name) { return (JsonNode) node.get(name); }

  static JsonNode at(JsonNode node, int place) { return (JsonNode) node.get(place); }

  static ObjectNode object() { return JSON.createObjectNode(); }

  static ArrayNode strings(String[] values) {
    ArrayNode made = JSON.createArrayNode();
    for (int at = 0; at < values.length; at++) made.add(values[at]);
    return made;
  }

  static String[] strings(JsonNode values) {
    String[] made = new String[values.size()];
    for (int at = 0; at < made.length; at++) made[at] = Python.at(values, at).asText();
    return made;
  }

  static ObjectNode strings(Map values) {
    ObjectNode made = object();
    for (Iterator each = values.entrySet().iterator(); each.hasNext(); ) {
      Map.Entry entry = (Map.Entry) each.next();
      made.put((String) entry.getKey(), (String) entry.getValue());
    }
    return made;
  }

  static Map stringMap(JsonNode values) {
    Map made = new HashMap();
    for (Iterator each = values.fields(); each.hasNext(); ) {
      Map.Entry entry = (Map.Entry) each.next();
      made.put(entry.getKey(), ((JsonNode) entry.getValue()).asText());
    }
    return made;
  }

  static StructType struct(JsonNode json) { return (StructType) DataType.fromJson(json.toString()); }

  static ArrayNode path(Identifier identifier) {
    return strings(identifier.namespace()).add(identifier.name());
  }

  static Identifier[] identifiers(String[] namespace, Object reply) {
    String[] names = strings(read(reply));
    Identifier[] made = new Identifier[names.length];
    for (int at = 0; at < made.length; at++) made[at] = Identifier.of(namespace, names[at]);
    return made;
  }

  static ObjectNode renaming(Identifier from, Identifier to) {
    ObjectNode made = object();
    made.set("name", path(from));
    made.set("to", path(to));
    return made;
  }
}

/** An error of Icefield's: its class there, and its message. */
class Failure extends RuntimeException {
  final String kind;

  public String toString() { return "icefield.errors." + kind + ": " + getMessage(); }

  Failure(String kind, String message) {
    super(message);
    this.kind = kind;
  }

  /** The nearest class of Spark's or Java's that PySpark turns into one of its own. */
  RuntimeException asSparks() {
    if (kind.equals("UnsupportedFeature") || kind.equals("NotSupportedByCatalog"))
      return new UnsupportedOperationException(getMessage(), this);
    if (kind.equals("InternalError")) return new IllegalStateException(getMessage(), this);
    return new IllegalArgumentException(getMessage(), this);
  }
}

/** Expressions of Spark's connectors as JSON. */
class Described {
  static ArrayNode all(Expression[] expressions) {
    ArrayNode made = Python.JSON.createArrayNode();
    for (int at = 0; at < expressions.length; at++) made.add(one(expressions[at]));
    return made;
  }

  static ObjectNode one(Expression expression) {
    ObjectNode made = Python.object();
    if (expression instanceof NamedReference) {
      made.set("column", Python.strings(((NamedReference) expression).fieldNames()));
    } else if (expression instanceof Literal) {
      Object value = ((Literal) expression).value();
      made.put("type", ((Literal) expression).dataType().typeName());
      if (value instanceof byte[]) made.put("bytes", (byte[]) value);
      else if (value == null) made.putNull("value");
      else made.put("value", value.toString());
    } else if (expression instanceof Transform) {
      made.put("transform", ((Transform) expression).name());
      made.set("arguments", all(((Transform) expression).arguments()));
    } else {
      String name = expression.getClass().getSimpleName();
      if (expression instanceof org.apache.spark.sql.connector.expressions.GeneralScalarExpression)
        name = ((org.apache.spark.sql.connector.expressions.GeneralScalarExpression) expression).name();
      else if (expression instanceof org.apache.spark.sql.connector.expressions.UserDefinedScalarFunc)
        name = ((org.apache.spark.sql.connector.expressions.UserDefinedScalarFunc) expression).canonicalName();
      made.put("function", name);
      made.set("arguments", all(expression.children()));
    }
    return made;
  }
}

class IcefieldTable implements Table, SupportsRead, SupportsWrite, SupportsMetadataColumns, SupportsRowLevelOperations,
    SupportsDeleteV2 {
  final BiFunction python;
  final JsonNode described;

  IcefieldTable(Object python) {
    this.python = (BiFunction) python;
    this.described = Python.read(Python.call(this.python, "describe", null));
  }

  public String name() { return Python.at(described, "name").asText(); }
  public String id() { return Python.at(described, "id").asText(); }
  public String version() { return Python.at(described, "version").asText(); }
  public StructType schema() { return Python.struct(Python.at(described, "schema")); }
  public Map properties() { return Python.stringMap(Python.at(described, "properties")); }

  public Transform[] partitioning() { return transforms(Python.at(described, "partitioning")); }

  static Transform[] transforms(JsonNode fields) {
    Transform[] made = new Transform[fields.size()];
    for (int at = 0; at < made.length; at++) {
      JsonNode field = Python.at(fields, at);
      NamedReference column = Expressions.column(Python.at(field, "column").asText());
      String name = Python.at(field, "transform").asText();
      if (name.equals("identity")) made[at] = Expressions.identity(column.describe());
      else if (name.equals("bucket")) made[at] = Expressions.bucket(Python.at(field, "width").asInt(), new String[] {column.describe()});
      else if (name.equals("truncate"))
        made[at] = Expressions.apply(name, new Expression[] {Expressions.literal(Integer.valueOf(Python.at(field, "width").asInt())), column});
      else made[at] = Expressions.apply(name, new Expression[] {column});
    }
    return made;
  }

  public Set capabilities() {
    EnumSet made = EnumSet.of(
        TableCapability.BATCH_READ, TableCapability.V1_BATCH_WRITE, TableCapability.TRUNCATE,
        TableCapability.OVERWRITE_BY_FILTER, TableCapability.OVERWRITE_DYNAMIC);
    // Dynamic overwrite needs it. The plan of one is ours, and no write of ours has writers in executors.
    made.add(TableCapability.BATCH_WRITE);
    made.add(TableCapability.STREAMING_WRITE);
    if (!Python.at(described, "writable").asBoolean()) made = EnumSet.of(TableCapability.BATCH_READ);
    if (Python.at(described, "writable").asBoolean()) evolving(made);
    if (Python.at(described, "streams").asBoolean()) made.add(TableCapability.MICRO_BATCH_READ);
    return made;
  }

  /** Spark 3.5 and 4.0 do not know it, and change no table within a statement. */
  private static void evolving(EnumSet made) {
    TableCapability[] known = TableCapability.values();
    for (int at = 0; at < known.length; at++) if (known[at].name().equals("AUTOMATIC_SCHEMA_EVOLUTION")) made.add(known[at]);
  }

  public MetadataColumn[] metadataColumns() {
    JsonNode columns = Python.at(described, "metadata_columns");
    MetadataColumn[] made = new MetadataColumn[columns.size()];
    for (int at = 0; at < made.length; at++) made[at] = new FileColumn(Python.at(columns, at));
    return made;
  }

  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) { return new IcefieldScanBuilder(this, options); }
  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) { return new IcefieldWrite(python, info); }
  public RowLevelOperationBuilder newRowLevelOperationBuilder(RowLevelOperationInfo info) {
    return new IcefieldOperation(this, info);
  }

  public boolean canDeleteWhere(Predicate[] predicates) {
    return "true".equals(Python.call(python, "can_delete", Described.all(predicates).toString()));
  }
  public void deleteWhere(Predicate[] predicates) { Python.call(python, "delete", Described.all(predicates).toString()); }
  public boolean truncateTable() { Python.call(python, "delete", "[]"); return true; }

  public boolean equals(Object other) {
    return other instanceof IcefieldTable && described.equals(((IcefieldTable) other).described);
  }
  public int hashCode() { return described.hashCode(); }
  public String toString() { return name(); }
}

class FileColumn implements MetadataColumn {
  private final JsonNode described;
  FileColumn(JsonNode described) { this.described = described; }
  public String name() { return Python.at(described, "name").asText(); }
  public DataType dataType() { return DataType.fromJson(Python.at(described, "type").toString()); }
  public boolean isNullable() { return Python.at(described, "nullable").asBoolean(); }
  public String comment() { return Python.at(described, "comment").asText(); }
}

class IcefieldScanBuilder implements ScanBuilder, SupportsPushDownV2Filters, SupportsPushDownRequiredColumns {
  private final IcefieldTable table;
  private final CaseInsensitiveStringMap options;
  private Predicate[] predicates = new Predicate[0];
  private StructType columns;
  private IcefieldOperation operation;

  IcefieldScanBuilder(IcefieldTable table, CaseInsensitiveStringMap options) {
    this.table = table;
    this.options = options;
    this.columns = table.schema();
  }

  /** Scans of a row-level operation are noted by it: what they planned is what the operation changes. */
  IcefieldScanBuilder of(IcefieldOperation operation) { this.operation = operation; return this; }

  /** Spark evaluates every predicate again: files are left out by them, and rows by Spark. */
  public Predicate[] pushPredicates(Predicate[] given) { predicates = given; return given; }
  public Predicate[] pushedPredicates() { return predicates; }
  public void pruneColumns(StructType required) { columns = required; }

  public Scan build() {
    ObjectNode asked = Python.object();
    asked.set("columns", Python.read(columns.json()));
    asked.set("predicates", Described.all(predicates));
    asked.set("options", Python.strings(options.asCaseSensitiveMap()));
    BiFunction made = (BiFunction) Python.call(operation == null ? table.python : operation.python, "scan", asked.toString());
    return new IcefieldScan(made, columns, operation == null);
  }
}

class IcefieldScan implements Scan, Batch, SupportsReportStatistics, SupportsRuntimeV2Filtering, SupportsReportPartitioning {
  private final BiFunction python;
  private final StructType columns;
  private final boolean takesRunTimeFilters;
  private JsonNode described;
  private Groups rows;
  private final ArrayList given = new ArrayList();
  private LogicalPlan frame;
  private boolean isFramed;

  IcefieldScan(BiFunction python, StructType columns, boolean takesRunTimeFilters) {
    this.python = python;
    this.takesRunTimeFilters = takesRunTimeFilters;
    this.columns = columns;
  }

  /** The scan in Python, for an explanation of a frame. */
  public BiFunction python() { return python; }

  /** What Spark asks about the plan, which is made when it first does: a stream has none. */
  private synchronized JsonNode described() {
    if (described == null) described = Python.read(Python.call(python, "describe", null));
    return described;
  }

  public StructType readSchema() { return columns; }
  public String description() { return Python.at(described(), "description").asText(); }
  public Batch toBatch() { return this; }
  public org.apache.spark.sql.connector.read.streaming.MicroBatchStream toMicroBatchStream(String checkpoint) {
    return new IcefieldStream(Python.call(python, "stream", null));
  }
  public Statistics estimateStatistics() {
    // A table is broadcast as rows. Those that come in Arrow may be many times as large as their files.
    long inArrow = Python.at(described(), "rows_in_arrow").asLong() * (8 + columns.defaultSize());
    long bytes = Math.max(Python.at(described(), "bytes").asLong(), inArrow);
    return new Counts(bytes, Python.at(described(), "rows").asLong());
  }

  /** None for a row-level operation: Spark would compute the source of a MERGE a second time to find their values. */
  public NamedReference[] filterAttributes() {
    if (!takesRunTimeFilters) return new NamedReference[0];
    String[] names = Python.strings(Python.at(described(), "runtime_columns"));
    NamedReference[] made = new NamedReference[names.length];
    for (int at = 0; at < names.length; at++) made[at] = Expressions.column("`" + names[at].replace("`", "``") + "`");
    return made;
  }

  public void filter(Predicate[] predicates) {
    JsonNode found = Python.read(Python.call(python, "filter", Described.all(predicates).toString()));
    synchronized (this) { rows = null; described = found; frame = null; isFramed = false; }
  }

  /** The rows as Spark's own frame of the plan gives them: each task reads a partition of it. */
  private Groups rows() {
    Groups found;
    synchronized (this) { found = rows; }
    if (found == null) {
      found = isGrouped()
          ? new Groups((java.util.List) Python.call(python, "groups", null), Python.struct(Python.at(Python.at(described(), "grouping"), "types")))
          : new Groups(Python.call(python, "rows", null));
      synchronized (this) { rows = found; }
    }
    return found;
  }

  /** Whether the files are grouped by partition values, by which Spark joins tables that are partitioned alike. */
  private boolean isGrouped() {
    return takesRunTimeFilters && Groups.areWanted() && Python.at(described(), "grouping") != null;
  }

  public Partitioning outputPartitioning() {
    if (!isGrouped()) return new UnknownPartitioning(0);
    JsonNode grouping = Python.at(described(), "grouping");
    return new KeyGroupedPartitioning(IcefieldTable.transforms(Python.at(grouping, "by")), Python.at(grouping, "groups").asInt());
  }

  /** The plan of Spark's own reader; null where another reads some of the files. */
  LogicalPlan frame() {
    synchronized (this) { if (isFramed) return frame; }
    if (isGrouped()) return null;
    Object found = Python.call(python, "frame", null);
    LogicalPlan made = planOf(found);
    synchronized (this) { frame = made; isFramed = true; }
    return made;
  }

  /** One row that has the number of all rows in each column; null where metadata does not say how many there are. */
  LogicalPlan counted(int columns) { return planOf(Python.call(python, "count", String.valueOf(columns))); }

  private static LogicalPlan planOf(Object frame) {
    return frame == null ? null : ((org.apache.spark.sql.Dataset) frame).queryExecution().optimizedPlan();
  }

  /** Known beforehand, so that Spark makes no readers before the filters of run time have arrived. */
  public Scan.ColumnarSupportMode columnarSupportMode() { return Scan.ColumnarSupportMode.UNSUPPORTED; }

  /** Partitions are read from the rows that they are of: filters of run time make others. */
  public InputPartition[] planInputPartitions() {
    Groups found = rows();
    synchronized (this) { return found.partitions(given); }
  }
  public synchronized PartitionReaderFactory createReaderFactory() { return new RowsFactory(given.toArray()); }

  public boolean equals(Object other) {
    return other instanceof IcefieldScan && columns.equals(((IcefieldScan) other).columns)
        && Python.at(described(), "key").equals(Python.at(((IcefieldScan) other).described(), "key"));
  }
  public int hashCode() { return Python.at(described(), "key").hashCode(); }
  public String toString() { return description(); }
}

/** The rows of a frame of Spark's, which tasks of another plan read part by part. */
class Rows {
  static RDD settled(Object rows) {
    settle((RDD) rows);
    return (RDD) rows;
  }

  /** Find out what an RDD reads before it travels: Spark's scheduler does so for those that it knows. */
  private static void settle(RDD of) {
    scala.collection.Seq dependencies = of.dependencies();
    for (int at = 0; at < dependencies.size(); at++) {
      Object each = dependencies.apply(at);
      if (each instanceof org.apache.spark.ShuffleDependency)
        throw new IllegalStateException("the rows of a scan come from a shuffle, which a task cannot read by itself");
      settle(((org.apache.spark.Dependency) each).rdd());
    }
  }

}

/** The rows of a scan: those of one frame, or of a frame for each group of files with equal partition values. */
class Groups {
  private final ArrayList rows = new ArrayList();
  private final ArrayList keys = new ArrayList();

  /** Iceberg's Java runtime has the same setting; Spark's own is for all sources. */
  static boolean areWanted() {
    org.apache.spark.sql.internal.SQLConf conf = org.apache.spark.sql.internal.SQLConf.get();
    return conf.getConfString("spark.sql.iceberg.planning.preserve-data-grouping", "false").equalsIgnoreCase("true")
        && conf.getConfString("spark.sql.sources.v2.bucketing.enabled", "false").equalsIgnoreCase("true");
  }

  Groups(Object rows) {
    this.rows.add(Rows.settled(rows));
    keys.add(null);
  }

  /** ``groups``: the values of a group as JSON, then its rows, then the next group. ``types``: of the values. */
  Groups(java.util.List groups, StructType types) {
    for (int at = 0; at < groups.size(); at += 2) {
      keys.add(Values.row(types, Python.read(groups.get(at))));
      rows.add(Rows.settled(groups.get(at + 1)));
    }
  }

  /** The partitions. Their rows are added to ``given``, unless they are there. */
  InputPartition[] partitions(ArrayList given) {
    ArrayList made = new ArrayList();
    for (int group = 0; group < rows.size(); group++) {
      RDD found = (RDD) rows.get(group);
      if (!given.contains(found)) given.add(found);
      int place = given.indexOf(found);
      InternalRow key = (InternalRow) keys.get(group);
      Partition[] parts = found.partitions();
      for (int at = 0; at < parts.length; at++)
        made.add(key == null ? new RowsPartition(parts[at], place) : new KeyedPartition(parts[at], place, key));
    }
    return (InputPartition[]) made.toArray(new InputPartition[made.size()]);
  }
}

class KeyedPartition extends RowsPartition implements HasPartitionKey {
  private final InternalRow key;
  KeyedPartition(Partition of, int place, InternalRow key) {
    super(of, place);
    this.key = key;
  }
  public InternalRow partitionKey() { return key; }
}

class Counts implements Statistics {
  private final long bytes;
  private final long rows;
  Counts(long bytes, long rows) { this.bytes = bytes; this.rows = rows; }
  public OptionalLong sizeInBytes() { return OptionalLong.of(bytes); }
  public OptionalLong numRows() { return rows < 0 ? OptionalLong.empty() : OptionalLong.of(rows); }
}

class RowsPartition implements InputPartition {
  final Partition of;
  final int place;
  RowsPartition(Partition of, int place) { this.of = of; this.place = place; }
}

class RowsFactory implements PartitionReaderFactory {
  private final Object[] rows;
  RowsFactory(Object[] rows) { this.rows = rows; }
  public PartitionReader createReader(InputPartition partition) {
    RowsPartition asked = (RowsPartition) partition;
    return new RowsReader(((RDD) rows[asked.place]).iterator(asked.of, TaskContext.get()));
  }
}

class RowsReader implements PartitionReader {
  private final scala.collection.Iterator rows;
  private Object row;
  RowsReader(scala.collection.Iterator rows) { this.rows = rows; }
  public boolean next() {
    if (!rows.hasNext()) return false;
    row = rows.next();
    return true;
  }
  public Object get() { return row; }
  public void close() {}
}

/** A write that gives Python a frame of the rows. */
class IcefieldWrite implements WriteBuilder, SupportsOverwriteV2, SupportsDynamicOverwrite, V1Write, InsertableRelation {
  private final BiFunction python;
  private final ObjectNode asked = Python.object();

  IcefieldWrite(BiFunction python, LogicalWriteInfo info) {
    this.python = python;
    asked.put("mode", "append");
    asked.put("query", info.queryId());
    asked.set("options", Python.strings(info.options().asCaseSensitiveMap()));
  }

  public boolean canOverwrite(Predicate[] predicates) {
    return "true".equals(Python.call(python, "can_overwrite", Described.all(predicates).toString()));
  }
  public WriteBuilder overwrite(Predicate[] predicates) {
    asked.put("mode", "overwrite");
    asked.set("predicates", Described.all(predicates));
    return this;
  }
  public WriteBuilder truncate() { return overwrite(new Predicate[0]); }
  public WriteBuilder overwriteDynamicPartitions() { asked.put("mode", "partitions"); return this; }

  public Write build() { return this; }
  public String description() { return "icefield"; }
  public InsertableRelation toInsertableRelation() { return this; }

  public void insert(org.apache.spark.sql.Dataset rows, boolean overwrite) {
    BiFunction write = (BiFunction) Python.call(python, "write", asked.toString());
    Python.call(write, "rows", rows);
  }
  public BatchWrite toBatch() { throw IcefieldStrategy.missing(); }
  public org.apache.spark.sql.connector.write.streaming.StreamingWrite toStreaming() { return new IcefieldEpochs(python, asked); }
}

/** A DELETE, UPDATE or MERGE: Spark says which rows change how, and Python writes and commits the changes. */
class IcefieldOperation implements RowLevelOperationBuilder, SupportsDelta {
  final BiFunction python;
  private final IcefieldTable table;
  private final RowLevelOperation.Command command;

  IcefieldOperation(IcefieldTable table, RowLevelOperationInfo info) {
    this.table = table;
    this.command = info.command();
    ObjectNode asked = Python.object();
    asked.put("command", command.name());
    asked.set("options", Python.strings(info.options().asCaseSensitiveMap()));
    this.python = (BiFunction) Python.call(table.python, "operation", asked.toString());
  }

  public RowLevelOperation build() { return this; }
  public RowLevelOperation.Command command() { return command; }
  public String description() { return "icefield"; }
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) { return new IcefieldScanBuilder(table, options).of(this); }
  public NamedReference[] rowId() {
    return new NamedReference[] {Expressions.column("_file"), Expressions.column("_pos")};
  }
  /** A changed row keeps its id, and inherits the number of the commit. */
  public NamedReference[] requiredMetadataAttributes() {
    return command != RowLevelOperation.Command.DELETE && Python.at(table.described, "lineage").asBoolean()
        ? new NamedReference[] {Expressions.column("_row_id")}
        : new NamedReference[0];
  }
  public DeltaWriteBuilder newWriteBuilder(LogicalWriteInfo info) { return new OperationWrite(python); }
}

class OperationWrite implements DeltaWriteBuilder, DeltaWrite, V1Write, InsertableRelation {
  private final BiFunction python;
  OperationWrite(BiFunction python) { this.python = python; }
  public DeltaWrite build() { return this; }
  public String description() { return "icefield"; }
  public InsertableRelation toInsertableRelation() { return this; }
  public void insert(org.apache.spark.sql.Dataset rows, boolean overwrite) { Python.call(python, "rows", rows); }

  /** Writers in executors: Spark asks for them in a session that has not the strategy. */
  public DeltaBatchWrite toBatch() { throw IcefieldStrategy.missing(); }
}

/** Plans what Spark would hand to writers of its own in executors: these writes are given a frame of the rows. */
class IcefieldStrategy extends SparkStrategy {
  static RuntimeException missing() {
    return new UnsupportedOperationException(
        "this session is not attached to the catalog and cannot change its rows: attach(spark, catalog, name=...) it");
  }

  static void addTo(/*SESSION*/ session) {
    synchronized (session.experimental()) {
      scala.collection./*IMMUTABLE*/Seq known = session.experimental().extraStrategies();
      ArrayList all = new ArrayList();
      for (int at = 0; at < known.size(); at++) {
        if (known.apply(at) instanceof IcefieldStrategy) return;
        all.add(known.apply(at));
      }
      all.add(new IcefieldStrategy());
      session.experimental().extraStrategies_$eq(Sequences.of(all));
    }
  }

  public scala.collection./*IMMUTABLE*/Seq apply(LogicalPlan plan) {
    ArrayList made = new ArrayList();
    if (plan instanceof WriteDelta) planned(plan, "originalTable", OperationWrite.class, made);
    else if (plan instanceof OverwritePartitionsDynamic) planned(plan, "table", IcefieldWrite.class, made);
    else if (plan instanceof WriteToDataSourceV2) epoch((WriteToDataSourceV2) plan, made);
    else {
      SparkPlan scan = plan instanceof Aggregate ? InPlace.counted((Aggregate) plan) : InPlace.planned(plan);
      if (scan != null) made.add(scan);
    }
    return Sequences.of(made);
  }

  private void epoch(WriteToDataSourceV2 plan, ArrayList made) {
    if (!(plan.batchWrite() instanceof MicroBatchWrite)) return;
    StreamingWrite write = ((MicroBatchWrite) plan.batchWrite()).writeSupport();
    if (write instanceof IcefieldEpochs)
      made.add(new IcefieldEpochExec(plan.batchWrite(), (IcefieldEpochs) write, (SparkPlan) planLater(plan.query())));
  }

  private static void planned(LogicalPlan plan, String table, Class kind, ArrayList made) {
    scala.Option write = (scala.Option) member(plan, "write");
    if (!write.isDefined() || !kind.isInstance(write.get())) return;
    DataSourceV2Relation relation = (DataSourceV2Relation) member(plan, table);
    try {
      java.lang.reflect.Constructor maker =
          org.apache.spark.sql.execution.datasources.v2.AppendDataExecV1.class.getConstructors()[0];
      made.add(maker.newInstance(new Object[] {relation.table(), member(plan, "query"), new Refresh(relation), write.get()}));
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
  }

  /** A member of a plan. Its methods differ in what they return, so that Janino cannot choose between them. */
  private static Object member(Object plan, String name) {
    try {
      return plan.getClass().getMethod(name, new Class[0]).invoke(plan, new Object[0]);
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
  }
}

class Refresh extends scala.runtime.AbstractFunction0 implements java.io.Serializable {
  private final transient DataSourceV2Relation relation;
  Refresh(DataSourceV2Relation relation) { this.relation = relation; }
  public Object apply() {
    /*SESSION*/ session = /*SESSION*/.active();
    session.sharedState().cacheManager().recacheByPlan(session, relation);
    return scala.runtime.BoxedUnit.UNIT;
  }
}

/** A catalog of Icefield's under the name that a session gave it. */
public class IcefieldCatalog implements StagingTableCatalog, SupportsNamespaces, FunctionCatalog {
  private String name;
  private String key;
  final Object self = new Object();
  private String[] namespace = new String[0];
  volatile BiFunction python;

  public void initialize(String name, CaseInsensitiveStringMap options) {
    this.name = name;
    if (options.containsKey("default-namespace")) namespace = options.get("default-namespace").split("\\.");
    /*SESSION*/ session = /*SESSION*/.active();
    String key = options.get("key");
    // A session that was made before may have the key of an earlier attachment.
    if (!Python.CATALOGS.containsKey(key)) key = session.sharedState().conf().get("spark.sql.catalog." + name + ".key", key);
    attach(session, key);
  }

  /** Begin to answer for a session, in place of what was attached before. */
  public void attach(/*SESSION*/ session, String key) {
    BiFunction attachment = (BiFunction) Python.CATALOGS.get(key);
    if (attachment == null) throw new IllegalStateException("catalog " + name + " is not attached; attach it again");
    python = (BiFunction) Python.call(attachment, "attached", session);
    Attachments.changed(this, this.key, key);
    this.key = key;
    IcefieldStrategy.addTo(session);
    Attachments.endWith(session.sparkContext());
  }

  boolean hasKey(String key) { return key.equals(this.key); }

  /** Spark finds kept rows by the catalog: those of a session and its clones are one. */
  public boolean equals(Object other) {
    return other instanceof IcefieldCatalog && name.equals(((IcefieldCatalog) other).name) && ((IcefieldCatalog) other).hasKey(key);
  }
  public int hashCode() { return name.hashCode(); }

  /** Forget the catalog, in all sessions that share it. */
  public void detach() { Attachments.end(key); }
  void forget() { python = new Detached(name); }

  public String name() { return name; }
  public String[] defaultNamespace() { return namespace; }

  /** The catalog in Python, and a plan of a statement that Python carries out: for the parser of a session. */
  public BiFunction python() { return python; }
  public LogicalPlan command(BiFunction python, String columns, String shown) { return OwnCommand.of(python, columns, shown); }

  private Object ask(String method, Object argument, Identifier identifier) throws NoSuchTableException {
    try {
      return Python.ask(python, method, argument);
    } catch (Failure failure) {
      if (failure.kind.equals("NoSuchTable") || failure.kind.equals("NoSuchNamespace"))
        throw new MissingTable(python, identifier);
      throw failure.asSparks();
    }
  }

  Object ask(String method, Object argument, String[] namespace) throws NoSuchNamespaceException {
    try {
      return Python.ask(python, method, argument);
    } catch (Failure failure) {
      if (failure.kind.equals("NoSuchNamespace")) throw new NoSuchNamespaceException(namespace);
      throw failure.asSparks();
    }
  }

  // Tables.

  private Table load(Identifier identifier, String key, String value) throws NoSuchTableException {
    ObjectNode asked = Python.object();
    asked.set("name", Python.path(identifier));
    if (key != null) asked.put(key, value);
    try {
      return new IcefieldTable(ask("load", asked.toString(), identifier));
    } catch (NoSuchTableException missing) {
      Table view = key == null ? viewAsTable(identifier) : null;
      if (view == null) throw missing;
      return view;
    }
  }

  /** The view of a name; null where there is none. */
  StoredView storedView(Identifier identifier) {
    Object found = Python.call(python, "view", Python.path(identifier).toString());
    return found == null ? null : new StoredView((BiFunction) found);
  }

  Table viewAsTable(Identifier identifier) {
    StoredView found = storedView(identifier);
    return found == null ? null : found.asTable(identifier);
  }

  public Table loadTable(Identifier identifier) throws NoSuchTableException { return load(identifier, null, null); }
  public Table loadTable(Identifier identifier, String version) throws NoSuchTableException {
    return load(identifier, "version", version);
  }
  public Table loadTable(Identifier identifier, long micros) throws NoSuchTableException {
    return load(identifier, "micros", Long.toString(micros));
  }
  public void invalidateTable(Identifier identifier) {}

  public Identifier[] listTables(String[] namespace) throws NoSuchNamespaceException {
    return Python.identifiers(namespace, ask("tables", Python.strings(namespace).toString(), namespace));
  }

  public boolean tableExists(Identifier identifier) {
    return "true".equals(Python.call(python, "table_exists", Python.path(identifier).toString()));
  }

  public Table createTable(Identifier identifier, StructType schema, Transform[] partitions, Map properties)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    return created(identifier, creation(identifier, schema, partitions, properties));
  }

  Table created(Identifier identifier, ObjectNode asked)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    try {
      return new IcefieldTable(Python.ask(python, "create", asked.toString()));
    } catch (Failure failure) {
      if (failure.kind.equals("TableExists")) throw new TableAlreadyExistsException(identifier);
      if (failure.kind.equals("NoSuchNamespace")) throw new NoSuchNamespaceException(identifier.namespace());
      throw failure.asSparks();
    }
  }

  /** The columns come as a struct: Spark makes one of them, in which their default values are. */
  static ObjectNode creation(Identifier identifier, StructType schema, Transform[] partitions, Map properties) {
    ObjectNode asked = Python.object();
    asked.set("name", Python.path(identifier));
    asked.set("schema", Python.read(schema.json()));
    asked.set("partitions", Described.all(partitions));
    asked.set("properties", Python.strings(properties));
    return asked;
  }

  public Set capabilities() { return EnumSet.of(TableCatalogCapability.SUPPORT_COLUMN_DEFAULT_VALUE); }

  private StagedTable staged(String how, Identifier identifier, StructType schema, Transform[] partitions, Map properties)
      throws NoSuchNamespaceException {
    ObjectNode asked = creation(identifier, schema, partitions, properties);
    asked.put("how", how);
    return new IcefieldStagedTable(ask("stage", asked.toString(), identifier.namespace()));
  }
  public StagedTable stageCreate(Identifier identifier, StructType schema, Transform[] partitions, Map properties)
      throws NoSuchNamespaceException {
    return staged("create", identifier, schema, partitions, properties);
  }
  public StagedTable stageReplace(Identifier identifier, StructType schema, Transform[] partitions, Map properties)
      throws NoSuchNamespaceException {
    return staged("replace", identifier, schema, partitions, properties);
  }
  public StagedTable stageCreateOrReplace(Identifier identifier, StructType schema, Transform[] partitions, Map properties)
      throws NoSuchNamespaceException {
    return staged("create or replace", identifier, schema, partitions, properties);
  }

  /** A frame's columns may hold nulls, whatever Spark says of its constants. */
  public boolean useNullableQuerySchema() { return true; }

  public Table alterTable(Identifier identifier, TableChange[] changes) throws NoSuchTableException {
    ObjectNode asked = Python.object();
    asked.set("name", Python.path(identifier));
    ArrayNode described = asked.putArray("changes");
    for (int at = 0; at < changes.length; at++) described.add(Changes.described(changes[at]));
    try {
      return new IcefieldTable(Python.ask(python, "alter", asked.toString()));
    } catch (Failure failure) {
      if (failure.kind.equals("NoSuchTable")) throw new MissingTable(python, identifier);
      // Spark puts one of its own around an IllegalArgumentException, which PySpark shows with its stack.
      throw new UnsupportedOperationException(failure.getMessage(), failure);
    }
  }

  private boolean drop(Identifier identifier, boolean purge) {
    ObjectNode asked = Python.object();
    asked.set("name", Python.path(identifier));
    asked.put("purge", purge);
    return "true".equals(Python.call(python, "drop", asked.toString()));
  }
  public boolean dropTable(Identifier identifier) { return drop(identifier, false); }
  public boolean purgeTable(Identifier identifier) { return drop(identifier, true); }

  public void renameTable(Identifier from, Identifier to) throws NoSuchTableException, TableAlreadyExistsException {
    try {
      Python.ask(python, "rename", Python.renaming(from, to).toString());
    } catch (Failure failure) {
      if (failure.kind.equals("TableExists")) throw new TableAlreadyExistsException(to);
      if (failure.kind.equals("NoSuchTable")) throw new MissingTable(python, from);
      throw failure.asSparks();
    }
  }

  // Functions.

  public Identifier[] listFunctions(String[] namespace) throws NoSuchNamespaceException {
    if (Functions.areIn(namespace)) return Functions.in(namespace);
    if (!namespaceExists(namespace)) throw new NoSuchNamespaceException(namespace);
    return new Identifier[0];
  }
  public UnboundFunction loadFunction(Identifier identifier) throws NoSuchFunctionException { return Functions.load(identifier); }

  // Namespaces.

  public String[][] listNamespaces() throws NoSuchNamespaceException { return listNamespaces(new String[0]); }
  public String[][] listNamespaces(String[] parent) throws NoSuchNamespaceException {
    JsonNode names = Python.read(ask("namespaces", Python.strings(parent).toString(), parent));
    String[][] made = new String[names.size()][];
    for (int at = 0; at < made.length; at++) made[at] = Python.strings(Python.at(names, at));
    return made;
  }
  public boolean namespaceExists(String[] namespace) {
    return "true".equals(Python.call(python, "namespace_exists", Python.strings(namespace).toString()));
  }
  public Map loadNamespaceMetadata(String[] namespace) throws NoSuchNamespaceException {
    return Python.stringMap(Python.read(ask("namespace", Python.strings(namespace).toString(), namespace)));
  }
  public void createNamespace(String[] namespace, Map properties) throws NamespaceAlreadyExistsException {
    ObjectNode asked = Python.object();
    asked.set("name", Python.strings(namespace));
    asked.set("properties", Python.strings(properties));
    try {
      Python.ask(python, "create_namespace", asked.toString());
    } catch (Failure failure) {
      if (failure.kind.equals("NamespaceExists")) throw new NamespaceAlreadyExistsException(namespace);
      throw failure.asSparks();
    }
  }
  public void alterNamespace(String[] namespace, NamespaceChange[] changes) throws NoSuchNamespaceException {
    ObjectNode asked = Python.object();
    asked.set("name", Python.strings(namespace));
    ObjectNode set = asked.putObject("set");
    ArrayNode removed = asked.putArray("remove");
    for (int at = 0; at < changes.length; at++) {
      if (changes[at] instanceof NamespaceChange.SetProperty)
        set.put(((NamespaceChange.SetProperty) changes[at]).property(), ((NamespaceChange.SetProperty) changes[at]).value());
      else removed.add(((NamespaceChange.RemoveProperty) changes[at]).property());
    }
    ask("alter_namespace", asked.toString(), namespace);
  }
  public boolean dropNamespace(String[] namespace, boolean cascade)
      throws NoSuchNamespaceException, NonEmptyNamespaceException {
    ObjectNode asked = Python.object();
    asked.set("name", Python.strings(namespace));
    asked.put("cascade", cascade);
    try {
      Python.ask(python, "drop_namespace", asked.toString());
      return true;
    } catch (Failure failure) {
      if (failure.kind.equals("NoSuchNamespace")) throw new NoSuchNamespaceException(namespace);
      if (failure.kind.equals("NamespaceNotEmpty")) throw new NonEmptyNamespaceException(namespace);
      throw failure.asSparks();
    }
  }
}

/** Changes of tables as JSON. */
class Changes {
  static ObjectNode described(TableChange change) {
    ObjectNode made = Python.object();
    String kind = change.getClass().getSimpleName();
    made.put("kind", kind);
    if (change instanceof TableChange.ColumnChange)
      made.set("column", Python.strings(((TableChange.ColumnChange) change).fieldNames()));
    if (change instanceof TableChange.SetProperty) {
      made.put("property", ((TableChange.SetProperty) change).property());
      made.put("value", ((TableChange.SetProperty) change).value());
    } else if (change instanceof TableChange.RemoveProperty) {
      made.put("property", ((TableChange.RemoveProperty) change).property());
    } else if (change instanceof TableChange.AddColumn) {
      TableChange.AddColumn add = (TableChange.AddColumn) change;
      made.set("type", Python.read(add.dataType().json()));
      made.put("nullable", add.isNullable());
      made.put("comment", add.comment());
      place(made, add.position());
      if (add.defaultValue() != null) made.put("default", constant(add.defaultValue().getValue()));
    } else if (change instanceof TableChange.RenameColumn) {
      made.put("to", ((TableChange.RenameColumn) change).newName());
    } else if (change instanceof TableChange.UpdateColumnType) {
      made.set("type", Python.read(((TableChange.UpdateColumnType) change).newDataType().json()));
    } else if (change instanceof TableChange.UpdateColumnNullability) {
      made.put("nullable", ((TableChange.UpdateColumnNullability) change).nullable());
    } else if (change instanceof TableChange.UpdateColumnComment) {
      made.put("comment", ((TableChange.UpdateColumnComment) change).newComment());
    } else if (change instanceof TableChange.UpdateColumnDefaultValue) {
      made.put("default", ((TableChange.UpdateColumnDefaultValue) change).newDefaultValue());
    } else if (change instanceof TableChange.UpdateColumnPosition) {
      place(made, ((TableChange.UpdateColumnPosition) change).position());
    } else if (change instanceof TableChange.DeleteColumn) {
      made.put("if_exists", ((TableChange.DeleteColumn) change).ifExists().booleanValue());
    }
    return made;
  }

  private static String constant(Literal value) {
    return new org.apache.spark.sql.catalyst.expressions.Literal(value.value(), value.dataType()).sql();
  }

  private static void place(ObjectNode made, TableChange.ColumnPosition position) {
    if (position == null) return;
    if (position instanceof TableChange.After) made.put("after", ((TableChange.After) position).column());
    else made.put("first", true);
  }
}
