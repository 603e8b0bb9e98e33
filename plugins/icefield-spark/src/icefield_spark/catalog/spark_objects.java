import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.Map;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTableType;
import org.apache.spark.sql.types.StructType;

/** Sequences of Scala's. */
class Sequences {
  static scala.collection./*IMMUTABLE*/Seq of(ArrayList items) { return PythonUtils.toSeq(items); }
  static scala.collection./*IMMUTABLE*/Seq none() { return of(new ArrayList()); }
  static scala.collection./*IMMUTABLE*/Seq one(Object item) {
    ArrayList items = new ArrayList();
    items.add(item);
    return of(items);
  }
}

/** Tables as the catalog that comes with Spark describes them. */
class SparksTables {
  private static final int PROPERTIES = 11;
  private static final int VIEW_TEXT = 13;

  static CatalogTable external(String name) {
    return made(new TableIdentifier(name), CatalogTableType.EXTERNAL(), new StructType(), null, null);
  }

  static CatalogTable view(TableIdentifier name, StructType schema, Map properties, String text) {
    return made(name, CatalogTableType.VIEW(), schema, properties, text);
  }

  /** The constructor has more parameters in later versions. What Spark takes for one is a method of the class. */
  private static CatalogTable made(
      TableIdentifier name, CatalogTableType kind, StructType schema, Map properties, String viewText) {
    try {
      Constructor maker = CatalogTable.class.getConstructors()[0];
      Object[] given = new Object[maker.getParameterTypes().length];
      for (int at = 4; at < given.length; at++)
        given[at] = CatalogTable.class.getMethod("$lessinit$greater$default$" + (at + 1), new Class[0]).invoke(null, new Object[0]);
      given[0] = name;
      given[1] = kind;
      given[2] = CatalogStorageFormat.empty();
      given[3] = schema;
      if (properties != null) given[PROPERTIES] = PythonUtils.toScalaMap(properties);
      if (viewText != null) given[VIEW_TEXT] = scala.Option.apply(viewText);
      return (CatalogTable) maker.newInstance(given);
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
  }
}
