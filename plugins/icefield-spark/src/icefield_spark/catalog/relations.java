// needs org.apache.spark.sql.connector.catalog.RelationCatalog
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.function.BiFunction;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.NoSuchViewException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.catalyst.analysis.ViewAlreadyExistsException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Relation;
import org.apache.spark.sql.connector.catalog.RelationCatalog;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableInfo;
import org.apache.spark.sql.connector.catalog.View;

/** A catalog for a Spark that creates and changes views of catalogs, too. */
public class IcefieldRelations extends IcefieldProcedures implements RelationCatalog {
  public Relation loadRelation(Identifier identifier) throws NoSuchTableException {
    try {
      return loadTable(identifier);
    } catch (NoSuchTableException missing) {
      StoredView found = storedView(identifier);
      if (found == null) throw missing;
      return shown(found);
    }
  }

  public View loadView(Identifier identifier) throws NoSuchViewException {
    StoredView found = storedView(identifier);
    if (found == null) throw new NoSuchViewException(identifier);
    return shown(found);
  }

  private static View shown(StoredView found) {
    View.Builder made = new View.Builder();
    made.withSchema(found.schema());
    made.withProperties(found.properties());
    made.withQueryText(found.text());
    made.withCurrentCatalog(found.catalog());
    made.withCurrentNamespace(found.namespace());
    made.withSqlConfigs(found.configs());
    made.withQueryColumnNames(found.queryColumns());
    return made.build();
  }

  /** A table with the columns and partition fields of another; of a table of Icefield's with its order and properties. */
  public Table createTableLike(Identifier identifier, TableInfo info, Table model)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    ObjectNode asked = creation(identifier, info.schema(), info.partitions(), info.properties());
    if (model instanceof IcefieldTable) asked.set("model", Python.at(((IcefieldTable) model).described, "path"));
    return created(identifier, asked);
  }

  /** A view is a relation of its own here, and no table. */
  Table viewAsTable(Identifier identifier) { return null; }

  public boolean viewExists(Identifier identifier) {
    return "true".equals(Python.call(python, "view_exists", Python.path(identifier).toString()));
  }

  public Identifier[] listViews(String[] namespace) throws NoSuchNamespaceException {
    return Python.identifiers(namespace, ask("views", Python.strings(namespace).toString(), namespace));
  }

  private View store(String method, Identifier identifier, View view) {
    ObjectNode asked = Python.object();
    asked.set("name", Python.path(identifier));
    asked.put("text", view.queryText());
    asked.set("schema", Python.read(view.schema().json()));
    asked.set("query_columns", Python.strings(view.queryColumnNames()));
    asked.put("catalog", view.currentCatalog());
    asked.set("namespace", Python.strings(view.currentNamespace()));
    asked.set("properties", Python.strings(view.properties()));
    BiFunction draft = (BiFunction) Python.ask(python, "draft_view", asked.toString());
    StoredView made = new StoredView(draft);
    Python.ask(draft, method, null);
    return shown(made);
  }

  public View createView(Identifier identifier, View view) throws ViewAlreadyExistsException, NoSuchNamespaceException {
    try {
      return store("create", identifier, view);
    } catch (Failure failure) {
      if (failure.kind.equals("ViewExists") || failure.kind.equals("TableExists"))
        throw new ViewAlreadyExistsException(identifier);
      if (failure.kind.equals("NoSuchNamespace")) throw new NoSuchNamespaceException(identifier.namespace());
      throw failure.asSparks();
    }
  }

  public View replaceView(Identifier identifier, View view) throws NoSuchViewException {
    try {
      return store("replace", identifier, view);
    } catch (Failure failure) {
      if (failure.kind.equals("NoSuchView")) throw new NoSuchViewException(identifier);
      throw failure.asSparks();
    }
  }

  public boolean dropView(Identifier identifier) {
    return "true".equals(Python.call(python, "drop_view", Python.path(identifier).toString()));
  }

  public void renameView(Identifier from, Identifier to) throws NoSuchViewException, ViewAlreadyExistsException {
    try {
      Python.ask(python, "rename_view", Python.renaming(from, to).toString());
    } catch (Failure failure) {
      if (failure.kind.equals("ViewExists") || failure.kind.equals("TableExists")) throw new ViewAlreadyExistsException(to);
      if (failure.kind.equals("NoSuchView")) throw new NoSuchViewException(from);
      throw failure.asSparks();
    }
  }
}
