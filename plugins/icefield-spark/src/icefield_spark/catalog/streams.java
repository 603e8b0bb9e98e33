import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.function.BiFunction;
import org.apache.spark.Partition;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.connector.read.*;
import org.apache.spark.sql.connector.read.streaming.*;
import org.apache.spark.sql.connector.write.*;
import org.apache.spark.sql.connector.write.streaming.*;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.types.StructType;

/** A stream of what is committed to a table. Offsets are JSON, which Spark keeps and Python reads. */
class IcefieldStream implements MicroBatchStream, SupportsTriggerAvailableNow {
  private final BiFunction python;
  private final ArrayList rows = new ArrayList();

  IcefieldStream(Object python) { this.python = (BiFunction) python; }

  public Offset initialOffset() { return new Place((String) Python.call(python, "initial", null)); }
  public Offset deserializeOffset(String json) { return new Place(json); }

  public ReadLimit getDefaultReadLimit() {
    JsonNode limits = Python.read(Python.call(python, "limits", null));
    if (limits.hasNonNull("files")) return ReadLimit.maxFiles(Python.at(limits, "files").asInt());
    return limits.hasNonNull("rows") ? ReadLimit.maxRows(Python.at(limits, "rows").asLong()) : ReadLimit.allAvailable();
  }
  public Offset latestOffset() { throw new IllegalStateException("the batch has no beginning"); }
  public Offset latestOffset(Offset start, ReadLimit limit) {
    ObjectNode asked = Python.object();
    asked.set("start", Python.read(start.json()));
    asked.put("all", limit instanceof ReadAllAvailable);
    return new Place((String) Python.call(python, "latest", asked.toString()));
  }
  public void prepareForTriggerAvailableNow() { Python.call(python, "pin", null); }

  public InputPartition[] planInputPartitions(Offset start, Offset end) {
    ObjectNode asked = Python.object();
    asked.set("start", Python.read(start.json()));
    asked.set("end", Python.read(end.json()));
    rows.clear();
    return new Groups(Python.call(python, "rows", asked.toString())).partitions(rows);
  }
  public PartitionReaderFactory createReaderFactory() { return new RowsFactory(rows.toArray()); }
  public void commit(Offset end) {}
  public void stop() {}
}

class Place extends Offset {
  private final String json;
  Place(String json) { this.json = json; }
  public String json() { return json; }
}

/** What one query writes to a table: each epoch is one commit. Spark tells the number of an epoch when it commits it. */
class IcefieldEpochs implements StreamingWrite {
  private final BiFunction python;
  private final ObjectNode asked;
  org.apache.spark.sql.Dataset rows;

  IcefieldEpochs(BiFunction python, ObjectNode asked) { this.python = python; this.asked = asked; }

  public StreamingDataWriterFactory createStreamingWriterFactory(PhysicalWriteInfo info) { throw IcefieldStrategy.missing(); }
  public boolean useCommitCoordinator() { return false; }
  public void commit(long epoch, WriterCommitMessage[] messages) {
    asked.put("epoch", epoch);
    Python.call((BiFunction) Python.call(python, "write", asked.toString()), "rows", rows);
  }
  public void abort(long epoch, WriterCommitMessage[] messages) {}
}

/** Gives Python the rows of an epoch; its child is planned with the state that the query keeps. */
class IcefieldEpochExec extends SparkPlan {
  private final BatchWrite write;
  private final IcefieldEpochs epochs;
  private final SparkPlan child;
  private RDD nothing;

  IcefieldEpochExec(BatchWrite write, IcefieldEpochs epochs, SparkPlan child) {
    this.write = write;
    this.epochs = epochs;
    this.child = child;
  }

  public synchronized RDD doExecute() {
    if (nothing == null) {
      /*SESSION*/ session = (/*SESSION*/) (Object) /*SESSION*/.active();
      epochs.rows = session.internalCreateDataFrame(child.execute(), child.schema(), false);
      write.commit(new WriterCommitMessage[0]);
      nothing = session.sparkContext().emptyRDD(scala.reflect.ClassTag$.MODULE$.apply(Object.class));
    }
    return nothing;
  }

  public scala.collection./*IMMUTABLE*/Seq output() { return Sequences.none(); }
  public scala.collection./*IMMUTABLE*/Seq children() {
    return Sequences.one(child);
  }
  public SparkPlan withNewChildrenInternal(scala.collection./*IMMUTABLE*/IndexedSeq children) {
    return new IcefieldEpochExec(write, epochs, (SparkPlan) children.apply(0));
  }
  public int productArity() { return 0; }
  public Object productElement(int at) { throw new IndexOutOfBoundsException(); }
  public boolean canEqual(Object other) { return other instanceof IcefieldEpochExec; }
}
