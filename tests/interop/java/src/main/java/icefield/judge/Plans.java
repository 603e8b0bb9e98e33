package icefield.judge;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.StaticTableOperations;
import org.apache.iceberg.TableScan;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.hadoop.HadoopFileIO;
import org.apache.iceberg.io.CloseableIterable;

/**
 * Plans a scan several times, for benchmarks: arguments are a metadata file, the number of plans, and optionally a value
 * of the column "id". For each plan it prints the tasks, and the nanoseconds of CPU of all threads and of elapsed time.
 */
public final class Plans {
  private Plans() {}

  public static void main(String[] args) throws Exception {
    OperatingSystemMXBean process = ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class);
    for (int plan = 0; plan < Integer.parseInt(args[1]); plan++) {
      long cpu = process.getProcessCpuTime();
      long wall = System.nanoTime();
      long tasks = plan(args);
      System.out.println(tasks + " " + (process.getProcessCpuTime() - cpu) + " " + (System.nanoTime() - wall));
    }
  }

  /** Loads the table anew, as each of the other libraries does, and counts the tasks of its scan. */
  private static long plan(String[] args) throws Exception {
    HadoopFileIO io = new HadoopFileIO(new Configuration());
    TableScan scan = new BaseTable(new StaticTableOperations(args[0], io), args[0]).newScan();
    if (args.length > 2) {
      scan = scan.filter(Expressions.equal("id", Long.parseLong(args[2])));
    }
    long tasks = 0;
    try (CloseableIterable<FileScanTask> planned = scan.planFiles()) {
      for (FileScanTask task : planned) {
        tasks++;
      }
    }
    return tasks;
  }
}
