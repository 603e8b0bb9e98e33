import com.fasterxml.jackson.databind.JsonNode;
import java.util.Iterator;
import java.util.Map;
import java.util.function.BiFunction;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.V1Table;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;

/** A view that a catalog keeps. Python looks through the plan of its query before Spark gets the text. */
class StoredView {
  final JsonNode described;

  /** Raises what Python has against the view. */
  StoredView(BiFunction python) {
    described = Python.read(Python.call(python, "describe", null));
    Python.call(python, "check", parsed(text(), configs()));
  }

  String text() { return Python.at(described, "text").asText(); }
  StructType schema() { return Python.struct(Python.at(described, "schema")); }
  String catalog() { return Python.at(described, "catalog").asText(); }
  String[] namespace() { return Python.strings(Python.at(described, "namespace")); }
  String[] queryColumns() { return Python.strings(Python.at(described, "query_columns")); }
  Map configs() { return Python.stringMap(Python.at(described, "configs")); }
  Map properties() { return Python.stringMap(Python.at(described, "properties")); }

  /** The plan that Spark's parser makes of a query under the settings that Spark reads the view with. */
  static LogicalPlan parsed(String text, Map configs) {
    SQLConf settings = new SQLConf();
    for (Iterator each = configs.entrySet().iterator(); each.hasNext(); ) {
      Map.Entry entry = (Map.Entry) each.next();
      settings.setConfString((String) entry.getKey(), (String) entry.getValue());
    }
    return (LogicalPlan) org.apache.spark.sql.internal.SQLConf$.MODULE$.withExistingConf(settings, new Parse(text));
  }

  /** The view as a table of the kind "view", which each version of Spark reads as one of its own views. */
  Table asTable(Identifier identifier) {
    Map properties = properties();
    String[] place = namespace(), columns = queryColumns();
    properties.put("view.catalogAndNamespace.numParts", Integer.toString(place.length + 1));
    properties.put("view.catalogAndNamespace.part.0", catalog());
    for (int at = 0; at < place.length; at++) properties.put("view.catalogAndNamespace.part." + (at + 1), place[at]);
    if (columns.length > 0) properties.put("view.query.out.numCols", Integer.toString(columns.length));
    for (int at = 0; at < columns.length; at++) properties.put("view.query.out.col." + at, columns[at]);
    for (Iterator each = configs().entrySet().iterator(); each.hasNext(); ) {
      Map.Entry entry = (Map.Entry) each.next();
      properties.put("view.sqlConfig." + entry.getKey(), entry.getValue());
    }
    String[] above = identifier.namespace();
    scala.Option database = scala.Option.apply(above.length == 0 ? null : above[above.length - 1]);
    return new V1Table(SparksTables.view(new TableIdentifier(identifier.name(), database), schema(), properties, text()));
  }
}

class Parse extends scala.runtime.AbstractFunction0 {
  private final String text;
  Parse(String text) { this.text = text; }
  public Object apply() {
    try {
      return /*SESSION*/.active().sessionState().sqlParser().parsePlan(text);
    } catch (Exception error) {
      throw new IllegalArgumentException("the query of the view cannot be read: " + error.getMessage());
    }
  }
}
