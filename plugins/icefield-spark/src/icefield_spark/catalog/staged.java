import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/** A table that is created or replaced together with its first rows. */
class IcefieldStagedTable extends IcefieldTable implements StagedTable {
  IcefieldStagedTable(Object python) { super(python); }
  public void commitStagedChanges() { Python.call(python, "commit", null); }
  public void abortStagedChanges() { Python.call(python, "abort", null); }
  public CustomTaskMetric[] reportDriverMetrics() { return new CustomTaskMetric[0]; }
}
