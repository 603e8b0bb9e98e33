import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.function.BiFunction;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.connector.ExternalCommandRunner;
import org.apache.spark.sql.execution.command.ExternalCommandExecutor;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The plan of a statement that Python carries out when Spark does. Spark copies plans by this constructor. */
public class OwnCommand extends ExternalCommandExecutor {
  public OwnCommand(ExternalCommandRunner runner, String shown, scala.collection.immutable.Map options) {
    super(runner, shown, options);
  }

  static OwnCommand of(BiFunction python, String columns, String shown) {
    scala.collection.immutable.Map none = (scala.collection.immutable.Map) scala.collection.immutable.Map$.MODULE$.empty();
    return new OwnCommand(new OwnRunner(python, columns.isEmpty() ? new StructType() : StructType.fromDDL(columns)), shown, none);
  }

  public scala.collection./*IMMUTABLE*/Seq output() { return ((OwnRunner) runner()).output; }
  public scala.collection./*IMMUTABLE*/Seq run(org.apache.spark.sql.SparkSession session) { return ((OwnRunner) runner()).rows(); }
}

class OwnRunner implements ExternalCommandRunner {
  private final BiFunction python;
  private final StructType columns;
  final scala.collection./*IMMUTABLE*/Seq output;

  OwnRunner(BiFunction python, StructType columns) {
    this.python = python;
    this.columns = columns;
    this.output = org.apache.spark.sql.catalyst.types.DataTypeUtils$.MODULE$.toAttributes(columns);
  }

  scala.collection./*IMMUTABLE*/Seq rows() {
    JsonNode given = Python.read(Python.call(python, "run", null));
    ArrayList rows = new ArrayList();
    for (int at = 0; at < given.size(); at++) {
      Object[] values = new Object[columns.length()];
      for (int place = 0; place < values.length; place++) values[place] = value(Python.at(Python.at(given, at), place), place);
      rows.add(RowFactory.create(values));
    }
    return Sequences.of(rows);
  }

  private Object value(JsonNode value, int place) {
    if (value.isNull()) return null;
    if (value.isTextual()) return value.asText();
    if (columns.apply(place).dataType() instanceof BooleanType) return Boolean.valueOf(value.asBoolean());
    if (columns.apply(place).dataType() instanceof IntegerType) return Integer.valueOf(value.asInt());
    return Long.valueOf(value.asLong());
  }

  public String[] executeCommand(String shown, CaseInsensitiveStringMap options) { throw new UnsupportedOperationException(); }
}
