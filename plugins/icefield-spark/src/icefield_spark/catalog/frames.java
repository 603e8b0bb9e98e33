import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;

/** Relations of tables that no catalog of the session names: Spark looks for no later version of such a table. */
public class Frames {
  public static final Frames MAKER = new Frames();

  public LogicalPlan relation(Object table, /*SESSION*/ session) {
    IcefieldStrategy.addTo(session);
    return DataSourceV2Relation.create(new IcefieldTable(table), scala.Option.empty(), scala.Option.empty());
  }
}
