package icefield.judge;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.util.List;
import org.apache.datasketches.memory.Memory;
import org.apache.datasketches.theta.CompactSketch;
import org.apache.datasketches.theta.SetOperation;
import org.apache.datasketches.theta.Union;
import org.apache.datasketches.theta.UpdateSketch;
import org.apache.iceberg.PartitionStatisticsFile;
import org.apache.iceberg.PartitionStatistics;
import org.apache.iceberg.PartitionStatsHandler;
import org.apache.iceberg.Partitioning;
import org.apache.iceberg.StatisticsFile;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableUtil;
import org.apache.iceberg.data.IcebergGenerics;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.puffin.BlobMetadata;
import org.apache.iceberg.puffin.Puffin;
import org.apache.iceberg.puffin.PuffinReader;
import org.apache.iceberg.types.Conversions;
import org.apache.iceberg.types.Types;
import org.apache.iceberg.util.Pair;

/** Statistics of tables and of their partitions. */
final class Statistics {
  private static final ObjectMapper MAPPER = new ObjectMapper();

  private Statistics() {}

  /** Those of the current snapshot, which are computed and registered first if that is asked for. */
  static ObjectNode partitions(JsonNode request) throws Exception {
    Table table = Tables.load(request);
    if (request.path("compute").booleanValue()) {
      PartitionStatisticsFile made = PartitionStatsHandler.computeAndWriteStatsFile(table);
      table.updatePartitionStatistics().setPartitionStatistics(made).commit();
    }
    long current = table.currentSnapshot().snapshotId();
    PartitionStatisticsFile file =
        table.partitionStatisticsFiles().stream().filter(one -> one.snapshotId() == current).findFirst().orElseThrow();
    Types.StructType type = Partitioning.partitionType(table);
    int version = TableUtil.formatVersion(table);
    ArrayNode rows = MAPPER.createArrayNode();
    try (CloseableIterable<PartitionStatistics> read =
        table.newPartitionStatisticsScan().useSnapshot(current).scan()) {
      for (PartitionStatistics stats : read) {
        ObjectNode row = rows.addObject();
        row.set("partition", Values.structToJson(type, stats.partition()));
        row.put("spec_id", stats.specId());
        row.put("data_record_count", stats.dataRecordCount());
        row.put("data_file_count", stats.dataFileCount());
        row.put("total_data_file_size_in_bytes", stats.totalDataFileSizeInBytes());
        row.put("position_delete_record_count", stats.positionDeleteRecordCount());
        row.put("position_delete_file_count", stats.positionDeleteFileCount());
        if (version > 2) {
          row.put("dv_count", stats.dvCount());
        }
        row.put("equality_delete_record_count", stats.equalityDeleteRecordCount());
        row.put("equality_delete_file_count", stats.equalityDeleteFileCount());
        row.put("total_record_count", stats.totalRecords());
        row.put("last_updated_at", stats.lastUpdatedAt());
        row.put("last_updated_snapshot_id", stats.lastUpdatedSnapshotId());
      }
    }
    ObjectNode made = MAPPER.createObjectNode();
    made.put("path", file.path());
    made.set("rows", rows);
    return made;
  }

  /**
   * For each sketch of the current snapshot: its column, the number that is stated, its estimate, that of a sketch which
   * Java makes of the column's values, and that of the union of both.
   */
  static ArrayNode sketches(JsonNode request) throws Exception {
    Table table = Tables.load(request);
    long current = table.currentSnapshot().snapshotId();
    StatisticsFile file =
        table.statisticsFiles().stream().filter(one -> one.snapshotId() == current).findFirst().orElseThrow();
    ArrayNode made = MAPPER.createArrayNode();
    try (PuffinReader reader =
        Puffin.read(table.io().newInputFile(file.path()))
            .withFileSize(file.fileSizeInBytes())
            .withFooterSize(file.fileFooterSizeInBytes())
            .build()) {
      List<BlobMetadata> blobs = reader.fileMetadata().blobs();
      for (Pair<BlobMetadata, ByteBuffer> pair : reader.readAll(blobs)) {
        byte[] bytes = new byte[pair.second().remaining()];
        pair.second().get(bytes);
        CompactSketch sketch = CompactSketch.wrap(Memory.wrap(bytes));
        Types.NestedField field = table.schema().findField(pair.first().inputFields().get(0));
        UpdateSketch own = UpdateSketch.builder().build();
        try (CloseableIterable<Record> records = IcebergGenerics.read(table).select(field.name()).build()) {
          for (Record record : records) {
            Object value = record.getField(field.name());
            if (value != null) {
              own.update(Conversions.toByteBuffer(field.type(), value));
            }
          }
        }
        Union union = SetOperation.builder().buildUnion();
        union.union(sketch);
        union.union(own);
        ObjectNode row = made.addObject();
        row.put("column", field.name());
        row.put("type", pair.first().type());
        row.put("ndv", pair.first().properties().get("ndv"));
        row.put("estimate", sketch.getEstimate());
        row.put("own", own.getEstimate());
        row.put("union", union.getResult().getEstimate());
      }
    }
    return made;
  }
}
