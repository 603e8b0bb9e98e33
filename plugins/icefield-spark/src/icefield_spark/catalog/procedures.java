// needs org.apache.spark.sql.connector.catalog.ProcedureCatalog
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Collections;
import java.util.Iterator;
import java.util.function.BiFunction;
import org.apache.spark.SparkThrowable;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.ProcedureCatalog;
import org.apache.spark.sql.connector.catalog.procedures.BoundProcedure;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.types.UTF8String;

/** A catalog for a Spark that calls procedures of catalogs. */
public class IcefieldProcedures extends IcefieldCatalog implements ProcedureCatalog {
  public UnboundProcedure loadProcedure(Identifier identifier) {
    try {
      return new IcefieldProcedure((BiFunction) Python.ask(python, "procedure", Python.path(identifier).toString()));
    } catch (Failure failure) {
      throw new NoSuchProcedure(failure.getMessage());
    }
  }

  public Identifier[] listProcedures(String[] namespace) {
    return Python.identifiers(namespace, Python.call(python, "procedures", Python.strings(namespace).toString()));
  }
}

/** Spark shows an error of loading as it is only where it is one of its own. */
class NoSuchProcedure extends IllegalArgumentException implements SparkThrowable {
  NoSuchProcedure(String message) { super(message); }
  public String toString() { return "icefield.errors.UnsupportedFeature: " + getMessage(); }
  public String getCondition() { return null; }
  public String getErrorClass() { return null; }
}

class IcefieldProcedure implements UnboundProcedure {
  final BiFunction python;
  final JsonNode described;

  IcefieldProcedure(BiFunction python) {
    this.python = python;
    this.described = Python.read(Python.call(python, "describe", null));
  }

  public String name() { return Python.at(described, "name").asText(); }
  public String description() { return Python.at(described, "doc").asText(); }
  public BoundProcedure bind(StructType given) { return new IcefieldCall(this); }
}

class IcefieldCall implements BoundProcedure {
  private final IcefieldProcedure procedure;
  private final ProcedureParameter[] parameters;

  IcefieldCall(IcefieldProcedure procedure) {
    this.procedure = procedure;
    JsonNode described = Python.at(procedure.described, "parameters");
    this.parameters = new ProcedureParameter[described.size()];
    for (int at = 0; at < parameters.length; at++) {
      JsonNode one = Python.at(described, at);
      DataType type = DataType.fromDDL(Python.at(one, "type").asText());
      ProcedureParameter.Builder made = ProcedureParameter.in(Python.at(one, "name").asText(), type);
      made.comment(Python.at(one, "doc").asText());
      if (!Python.at(one, "required").asBoolean()) made.defaultValue("NULL");
      parameters[at] = made.build();
    }
  }

  public String name() { return procedure.name(); }
  public String description() { return procedure.description(); }
  public ProcedureParameter[] parameters() { return parameters; }
  public boolean isDeterministic() { return false; }

  public Iterator call(InternalRow given) {
    ObjectNode arguments = Python.object();
    for (int at = 0; at < parameters.length; at++) {
      DataType type = parameters[at].dataType();
      put(arguments, parameters[at].name(), given.get(at, type), type);
    }
    JsonNode rows = Python.read(Python.call(procedure.python, "call", arguments.toString()));
    StructType columns = StructType.fromDDL(Python.at(procedure.described, "columns").asText());
    return Collections.singletonList(new CallRows(columns, rows)).iterator();
  }

  /** A value of Spark's as JSON; times as ms since 1970 UTC. */
  private static void put(ObjectNode made, String name, Object value, DataType type) {
    if (value == null) made.putNull(name);
    else if (value instanceof Boolean) made.put(name, (Boolean) value);
    else if (type instanceof TimestampType) made.put(name, Math.floorDiv(((Long) value).longValue(), 1000L));
    else if (value instanceof Number) made.put(name, ((Number) value).longValue());
    else if (type instanceof ArrayType) items(made.putArray(name), (ArrayData) value, ((ArrayType) type).elementType());
    else if (type instanceof MapType) {
      ObjectNode entries = made.putObject(name);
      ArrayData keys = ((MapData) value).keyArray(), values = ((MapData) value).valueArray();
      DataType kind = ((MapType) type).valueType();
      for (int at = 0; at < keys.numElements(); at++)
        put(entries, keys.getUTF8String(at).toString(), values.get(at, kind), kind);
    } else made.put(name, value.toString());
  }

  private static void items(ArrayNode made, ArrayData values, DataType kind) {
    for (int at = 0; at < values.numElements(); at++) {
      Object value = values.isNullAt(at) ? null : values.get(at, kind);
      if (value instanceof Long) made.add((Long) value);
      else made.add(value == null ? null : value.toString());
    }
  }
}

/** The rows of a call: strings and whole numbers. */
class CallRows implements LocalScan {
  private final StructType columns;
  private final InternalRow[] rows;

  CallRows(StructType columns, JsonNode given) {
    this.columns = columns;
    this.rows = new InternalRow[given.size()];
    for (int at = 0; at < rows.length; at++) {
      Object[] values = new Object[columns.length()];
      for (int column = 0; column < values.length; column++)
        values[column] = value(Python.at(Python.at(given, at), column), columns.apply(column).dataType());
      rows[at] = new GenericInternalRow(values);
    }
  }

  private static Object value(JsonNode value, DataType type) {
    if (value.isNull()) return null;
    if (value.isTextual()) return UTF8String.fromString(value.asText());
    if (type instanceof IntegerType) return Integer.valueOf(value.asInt());
    return Long.valueOf(value.asLong());
  }

  public StructType readSchema() { return columns; }
  public InternalRow[] rows() { return rows; }
}
