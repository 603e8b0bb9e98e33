import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.InterpretedPredicate;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.unsafe.types.UTF8String;

/** The data files of a relation of Spark's, with the values that are constant in each: Spark lists no folders. */
class DataFiles implements FileIndex {
  private static final int MOST_HOSTS = 1000;

  private final String described;
  private final StructType constants;
  private final InternalRow[] values;
  private final FileStatus[] files;
  private long bytes;

  DataFiles(String described, JsonNode asked, Configuration conf) {
    this.described = described;
    JsonNode listed = Python.at(asked, "files");
    constants = Python.struct(Python.at(asked, "constants"));
    values = new InternalRow[listed.size()];
    files = new FileStatus[listed.size()];
    for (int at = 0; at < files.length; at++) {
      JsonNode file = Python.at(listed, at);
      long size = Python.at(file, 1).asLong();
      files[at] = located(new FileStatus(size, false, 1, size, 0, new Path(Python.at(file, 0).asText())), conf);
      values[at] = Values.row(constants, Python.at(file, 2));
      bytes += size;
    }
  }

  /** The status of a file with the hosts that have its blocks, where its file system knows them. */
  private FileStatus located(FileStatus file, Configuration conf) {
    String scheme = file.getPath().toUri().getScheme();
    if (files.length > MOST_HOSTS || !"hdfs".equals(scheme) && !"viewfs".equals(scheme)) return file;
    try {
      return new LocatedFileStatus(file, file.getPath().getFileSystem(conf).getFileBlockLocations(file.getPath(), 0, file.getLen()));
    } catch (java.io.IOException error) {
      return file; // the reader of the file says what is wrong with it
    }
  }

  /** The files for which conditions on constants hold: Spark evaluates these nowhere else. */
  public scala.collection./*IMMUTABLE*/Seq listFiles(
      scala.collection./*IMMUTABLE*/Seq onConstants, scala.collection./*IMMUTABLE*/Seq onRows) {
    ArrayList made = new ArrayList();
    InterpretedPredicate[] conditions = new InterpretedPredicate[onConstants.size()];
    for (int at = 0; at < conditions.length; at++)
      conditions[at] = new InterpretedPredicate(bound((org.apache.spark.sql.catalyst.expressions.Expression) onConstants.apply(at)));
    for (int at = 0; at < files.length; at++)
      if (hold(conditions, values[at])) made.add(PartitionDirectory.apply(values[at], new FileStatus[] {files[at]}));
    return Sequences.of(made);
  }

  private static boolean hold(InterpretedPredicate[] conditions, InternalRow values) {
    for (int at = 0; at < conditions.length; at++) if (!conditions[at].eval(values)) return false;
    return true;
  }

  /** An expression with places in a row in place of the names of constants. */
  private org.apache.spark.sql.catalyst.expressions.Expression bound(
      org.apache.spark.sql.catalyst.expressions.Expression expression) {
    if (expression instanceof AttributeReference) {
      AttributeReference column = (AttributeReference) expression;
      return new BoundReference(constants.fieldIndex(column.name()), column.dataType(), true);
    }
    scala.collection.Seq children = expression.children();
    ArrayList made = new ArrayList();
    for (int at = 0; at < children.size(); at++)
      made.add(bound((org.apache.spark.sql.catalyst.expressions.Expression) children.apply(at)));
    return (org.apache.spark.sql.catalyst.expressions.Expression) expression.withNewChildren(Sequences.of(made));
  }

  public scala.collection./*IMMUTABLE*/Seq rootPaths() {
    ArrayList made = new ArrayList();
    for (int at = 0; at < files.length; at++) made.add(files[at].getPath());
    return Sequences.of(made);
  }

  public String[] inputFiles() {
    String[] made = new String[files.length];
    for (int at = 0; at < made.length; at++) made[at] = files[at].getPath().toUri().toString();
    return made;
  }

  public void refresh() {}
  public long sizeInBytes() { return bytes; }
  public StructType partitionSchema() { return constants; }
  public scala.Option metadataOpsTimeNs() { return scala.Option.empty(); }

  public boolean equals(Object other) { return other instanceof DataFiles && ((DataFiles) other).described.equals(described); }
  public int hashCode() { return described.hashCode(); }
}

/** Spark's internal values from JSON. */
class Values {
  static InternalRow row(StructType columns, JsonNode values) {
    Object[] made = new Object[values.size()];
    for (int at = 0; at < made.length; at++) made[at] = of(columns.apply(at).dataType(), Python.at(values, at));
    return new GenericInternalRow(made);
  }

  /** A value of a type. Floats and doubles are given by their bits, bytes in Base64. */
  private static Object of(DataType type, JsonNode value) {
    if (value.isNull()) return null;
    if (type.equals(DataTypes.BooleanType)) return Boolean.valueOf(value.asBoolean());
    if (type.equals(DataTypes.IntegerType) || type.equals(DataTypes.DateType)) return Integer.valueOf(value.asInt());
    if (type.equals(DataTypes.StringType)) return UTF8String.fromString(value.asText());
    if (type.equals(DataTypes.BinaryType)) return java.util.Base64.getDecoder().decode(value.asText());
    if (type.equals(DataTypes.FloatType)) return Float.valueOf(Float.intBitsToFloat(value.asInt()));
    if (type.equals(DataTypes.DoubleType)) return Double.valueOf(Double.longBitsToDouble(value.asLong()));
    if (type instanceof DecimalType)
      return Decimal.apply(new java.math.BigDecimal(value.asText()), ((DecimalType) type).precision(), ((DecimalType) type).scale());
    return Long.valueOf(value.asLong());
  }
}
