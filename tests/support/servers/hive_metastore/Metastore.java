import java.lang.reflect.Method;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.HiveMetaStore;
import org.apache.hadoop.hive.metastore.IHMSHandler;
import org.apache.hadoop.hive.metastore.TUGIBasedProcessor;
import org.apache.hadoop.hive.metastore.txn.TxnDbUtil;
import org.apache.hadoop.hive.metastore.txn.TxnStore;
import org.apache.hadoop.hive.metastore.txn.TxnUtils;
import org.apache.hadoop.hive.thrift.TUGIContainingTransport;
import org.apache.thrift.protocol.TProtocol;
import org.apache.thrift.server.ServerContext;
import org.apache.thrift.server.TServerEventHandler;
import org.apache.thrift.server.TThreadPoolServer;
import org.apache.thrift.transport.TServerSocket;
import org.apache.thrift.transport.TTransport;

/** A Hive Metastore on loopback only, with the tables of the lock manager, which forgets locks whose holders are dead. */
public class Metastore {
  public static void main(String[] arguments) throws Exception {
    int port = Integer.parseInt(arguments[0]);
    HiveConf conf = new HiveConf(Metastore.class);
    TxnDbUtil.setConfValues(conf);
    TxnDbUtil.prepDb(conf);
    IHMSHandler handler =
        HiveMetaStore.newRetryingHMSHandler(new HiveMetaStore.HMSHandler("metastore", conf, false), conf);
    reap(TxnUtils.getTxnStore(conf));
    TServerSocket socket = new TServerSocket(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
    TThreadPoolServer server =
        new TThreadPoolServer(
            new TThreadPoolServer.Args(socket)
                .processor(new TUGIBasedProcessor<>(handler))
                .transportFactory(new TUGIContainingTransport.Factory()));
    server.setServerEventHandler(new Cleaner());
    server.serve();
  }

  private static void reap(TxnStore store) {
    Thread reaper =
        new Thread(
            () -> {
              while (true) {
                store.performTimeOuts();
                try {
                  Thread.sleep(500);
                } catch (InterruptedException ended) {
                  return;
                }
              }
            });
    reaper.setDaemon(true);
    reaper.start();
  }

  /** Gives the database connection of a thread back when its client has gone, as the metastore's own server does. */
  private static class Cleaner implements TServerEventHandler {
    @Override
    public void preServe() {}

    @Override
    public ServerContext createContext(TProtocol input, TProtocol output) {
      return null;
    }

    @Override
    public void deleteContext(ServerContext context, TProtocol input, TProtocol output) {
      try {
        Method clean = HiveMetaStore.class.getDeclaredMethod("cleanupRawStore");
        clean.setAccessible(true);
        clean.invoke(null);
      } catch (ReflectiveOperationException error) {
        throw new IllegalStateException(error);
      }
    }

    @Override
    public void processContext(ServerContext context, TTransport input, TTransport output) {}
  }
}
