import java.util.ArrayList;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.DynamicPruning;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;

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
    IcefieldScan scan = scan(at);
    LogicalPlan frame = scan == null ? null : scan.frame();
    if (frame == null) return null;
    LogicalPlan named = renamed(named(frame, scan.description()), at.output());
    return physical(over(plan, named));
  }

  /** The one row of a query that counts the rows of a table, where metadata says how many there are; else null. */
  static SparkPlan counted(Aggregate plan) {
    if (!plan.groupingExpressions().isEmpty()) return null;
    scala.collection.Seq columns = plan.aggregateExpressions();
    for (int at = 0; at < columns.size(); at++) if (!isCount(columns.apply(at))) return null;
    LogicalPlan at = child(plan);
    while (at instanceof Project) at = child(at);
    IcefieldScan scan = scan(at);
    LogicalPlan frame = scan == null ? null : scan.counted(columns.size());
    return frame == null ? null : physical(renamed(frame, plan.output()));
  }

  /** The scan of a table of ours that a node is; null for every other node. */
  private static IcefieldScan scan(LogicalPlan plan) {
    Object scan = plan instanceof DataSourceV2ScanRelation ? ((DataSourceV2ScanRelation) plan).scan() : null;
    return scan instanceof IcefieldScan ? (IcefieldScan) scan : null;
  }

  /** Whether a column of an aggregation is the number of all rows: count(*) or count(1), and not of distinct values. */
  private static boolean isCount(Object column) {
    if (!(column instanceof Alias) || !(((Alias) column).child() instanceof AggregateExpression)) return false;
    AggregateExpression asked = (AggregateExpression) ((Alias) column).child();
    if (asked.isDistinct() || asked.filter().isDefined() || !(asked.aggregateFunction() instanceof Count)) return false;
    scala.collection.Seq counted = ((TreeNode) asked.aggregateFunction()).children();
    Object first = counted.size() == 1 ? counted.apply(0) : null;
    return first instanceof org.apache.spark.sql.catalyst.expressions.Literal
        && ((org.apache.spark.sql.catalyst.expressions.Literal) first).value() != null;
  }

  /** Planned to the end: what Spark planned later would not be known for a part of the statement. */
  private static SparkPlan physical(LogicalPlan plan) {
    return (SparkPlan) /*SESSION*/.active().sessionState().planner().plan(plan).next();
  }

  private static LogicalPlan over(LogicalPlan plan, LogicalPlan scan) {
    if (plan instanceof DataSourceV2ScanRelation) return scan;
    return (LogicalPlan) plan.withNewChildren(Sequences.one(over(child(plan), scan)));
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
    ArrayList made = new ArrayList();
    for (int at = 0; at < wanted.size(); at++) {
      Attribute column = (Attribute) wanted.apply(at);
      made.add(new Alias(
          (org.apache.spark.sql.catalyst.expressions.Expression) found.apply(at), column.name(), column.exprId(),
          Sequences.none(), scala.Option.apply(column.metadata()), Sequences.none()));
    }
    return new Project(Sequences.of(made), frame);
  }

  /** The plan with a text that its scans of files show in place of the name of a table. */
  private static LogicalPlan named(LogicalPlan plan, String text) {
    if (plan instanceof LogicalRelation) return named((LogicalRelation) plan, text);
    scala.collection.Seq children = ((TreeNode) plan).children();
    if (children.isEmpty()) return plan;
    ArrayList made = new ArrayList();
    for (int at = 0; at < children.size(); at++) made.add(named((LogicalPlan) children.apply(at), text));
    return (LogicalPlan) plan.withNewChildren(Sequences.of(made));
  }

  private static LogicalPlan named(LogicalRelation relation, String text) {
    Object[] parts = new Object[relation.productArity()];
    for (int at = 0; at < parts.length; at++) parts[at] = relation.productElement(at);
    parts[2] = scala.Option.apply(SparksTables.external(text));
    try {
      return (LogicalPlan) LogicalRelation.class.getConstructors()[0].newInstance(parts);
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
  }
}
