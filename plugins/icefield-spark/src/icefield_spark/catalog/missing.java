import java.util.function.BiFunction;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Identifier;

/** A name that no table has. Spark often only tries a name, so that near names are looked for when the message is read. */
class MissingTable extends NoSuchTableException {
  private final transient BiFunction python;
  private final String name;
  private String message;

  MissingTable(BiFunction python, Identifier identifier) {
    super(identifier);
    this.python = python;
    this.name = Python.path(identifier).toString();
  }

  public String getMessage() {
    if (message == null && python != null) message = (String) python.apply("missing", name);
    return message == null ? super.getMessage() : message;
  }
}
