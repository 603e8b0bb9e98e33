import java.lang.reflect.Method;
import java.util.ArrayList;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTableType;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.DynamicPruning;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.types.StructType;

/** Scans of which Spark's own reader reads every file: their frames are planned as parts of the statement. */
class InPlace {
  /** The physical plan of a scan and of the filters and columns above it; null where the scan gives rows itself. */
  static SparkPlan planned(LogicalPlan plan) {
    LogicalPlan at = plan;
    while (at instanceof Project || at instanceof Filter) {
      // Values that a join finds leave out files of the scan, which plans them itself.
      if (at instanceof Filter && isDynamic(((Filter) at).condition())) return null;
      at = child(at);
    }
    if (!(at instanceof DataSourceV2ScanRelation)) return null;
    Object scan = ((DataSourceV2ScanRelation) at).scan();
    if (!(scan instanceof IcefieldScan)) return null;
    LogicalPlan frame = ((IcefieldScan) scan).frame();
    if (frame == null) return null;
    LogicalPlan named = renamed(named(frame, ((IcefieldScan) scan).description()), at.output());
    // Planned to the end: what Spark planned later would not be known for a part of the statement.
    return (SparkPlan) /*SESSION*/.active().sessionState().planner().plan(over(plan, named)).next();
  }

  private static LogicalPlan over(LogicalPlan plan, LogicalPlan scan) {
    if (plan instanceof DataSourceV2ScanRelation) return scan;
    ArrayList made = new ArrayList();
    made.add(over(child(plan), scan));
    return (LogicalPlan) plan.withNewChildren(org.apache.spark.api.python.PythonUtils.toSeq(made));
  }

  private static LogicalPlan child(LogicalPlan plan) { return (LogicalPlan) ((TreeNode) plan).children().apply(0); }

  private static boolean isDynamic(Object expression) {
    if (expression instanceof DynamicPruning) return true;
    scala.collection.Seq children = ((TreeNode) expression).children();
    for (int at = 0; at < children.size(); at++) if (isDynamic(children.apply(at))) return true;
    return false;
  }

  /** The columns of a frame under the identities that the statement has for those of the scan. */
  private static LogicalPlan renamed(LogicalPlan frame, scala.collection.Seq wanted) {
    scala.collection.Seq found = frame.output();
    scala.collection.Seq none = org.apache.spark.api.python.PythonUtils.toSeq(new ArrayList());
    ArrayList made = new ArrayList();
    for (int at = 0; at < wanted.size(); at++) {
      Attribute column = (Attribute) wanted.apply(at);
      made.add(new Alias(
          (org.apache.spark.sql.catalyst.expressions.Expression) found.apply(at), column.name(), column.exprId(), (scala.collection./*IMMUTABLE*/Seq) none,
          scala.Option.apply(column.metadata()), (scala.collection./*IMMUTABLE*/Seq) none));
    }
    return new Project(org.apache.spark.api.python.PythonUtils.toSeq(made), frame);
  }

  /** The plan with a text that its scans of files show in place of the name of a table. */
  private static LogicalPlan named(LogicalPlan plan, String text) {
    if (plan instanceof LogicalRelation) return named((LogicalRelation) plan, text);
    scala.collection.Seq children = ((TreeNode) plan).children();
    if (children.isEmpty()) return plan;
    ArrayList made = new ArrayList();
    for (int at = 0; at < children.size(); at++) made.add(named((LogicalPlan) children.apply(at), text));
    return (LogicalPlan) plan.withNewChildren(org.apache.spark.api.python.PythonUtils.toSeq(made));
  }

  private static LogicalPlan named(LogicalRelation relation, String text) {
    try {
      java.lang.reflect.Constructor maker = CatalogTable.class.getConstructors()[0];
      Object[] table = new Object[maker.getParameterCount()];
      table[0] = new TableIdentifier(text);
      table[1] = CatalogTableType.EXTERNAL();
      table[2] = CatalogStorageFormat.empty();
      table[3] = new StructType();
      for (int at = 4; at < table.length; at++) table[at] = standard(at + 1);
      Object[] parts = new Object[relation.productArity()];
      for (int at = 0; at < parts.length; at++) parts[at] = relation.productElement(at);
      parts[2] = scala.Option.apply(maker.newInstance(table));
      return (LogicalPlan) LogicalRelation.class.getConstructors()[0].newInstance(parts);
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
  }

  /** What Spark takes for a part of a table that is not given. */
  private static Object standard(int number) throws ReflectiveOperationException {
    Method method = CatalogTable.class.getMethod("$lessinit$greater$default$" + number, new Class[0]);
    return method.invoke(null, new Object[0]);
  }
}
