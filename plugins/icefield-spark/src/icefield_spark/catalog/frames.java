import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;

/** Relations of what no catalog of the session names. */
public class Frames {
  public static final Frames MAKER = new Frames();

  /** The relation of a table: Spark looks for no later version of it. */
  public LogicalPlan relation(Object table, /*SESSION*/ session) {
    IcefieldStrategy.addTo(session);
    return DataSourceV2Relation.create(new IcefieldTable(table), scala.Option.empty(), scala.Option.empty());
  }

  /** A frame of files, described as JSON. Its columns are those of the files and then the constants. */
  public org.apache.spark.sql.Dataset ofFiles(String described, /*SESSION*/ session) {
    JsonNode asked = Python.read(described);
    DataFiles files = new DataFiles(described, asked, session.sessionState().newHadoopConf());
    scala.collection.immutable.Map options =
        new CaseInsensitiveMap(PythonUtils.toScalaMap(Python.stringMap(Python.at(asked, "options"))));
    return session.baseRelationToDataFrame(new HadoopFsRelation(
        files, files.partitionSchema(), Python.struct(Python.at(asked, "columns")), scala.Option.empty(), new ParquetFileFormat(),
        options, session));
  }
}
