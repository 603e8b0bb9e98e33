import java.lang.ref.WeakReference;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.function.BiFunction;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerApplicationEnd;

/** Which sessions answer for which attachment, so that nothing of Python's is held when it ends. */
class Attachments {
  // By an object that each alone has: catalogs of clones are equal.
  private static final Map CATALOGS = new WeakHashMap();
  private static WeakReference listened = new WeakReference(null);

  /** The catalog of a session has another attachment; the earlier one goes with its last session. */
  static synchronized void changed(IcefieldCatalog catalog, String before, String now) {
    CATALOGS.put(catalog.self, new WeakReference(catalog));
    if (before == null || before.equals(now)) return;
    Object[] all = CATALOGS.values().toArray();
    for (int at = 0; at < all.length; at++) if (((WeakReference) all[at]).get() != catalog && hasKey(all[at], before)) return;
    Python.CATALOGS.remove(before);
  }

  /** End an attachment, or all where there is no key. */
  static synchronized void end(String key) {
    if (key == null) Python.CATALOGS.clear();
    else Python.CATALOGS.remove(key);
    Object[] all = CATALOGS.values().toArray();
    for (int at = 0; at < all.length; at++) if (key == null || hasKey(all[at], key)) forget(all[at]);
  }

  private static boolean hasKey(Object held, String key) {
    IcefieldCatalog catalog = (IcefieldCatalog) ((WeakReference) held).get();
    return catalog != null && catalog.hasKey(key);
  }

  private static void forget(Object held) {
    IcefieldCatalog catalog = (IcefieldCatalog) ((WeakReference) held).get();
    if (catalog != null) catalog.forget();
  }

  /** End all when Spark is stopped: the JVM goes on, and so does Python. */
  static synchronized void endWith(SparkContext context) {
    if (listened.get() == context) return;
    listened = new WeakReference(context);
    context.addSparkListener(new EndOfSpark());
  }
}

class EndOfSpark extends SparkListener {
  public void onApplicationEnd(SparkListenerApplicationEnd event) { Attachments.end(null); }
}

/** Answers for a catalog that was detached. */
class Detached implements BiFunction {
  private final String name;
  Detached(String name) { this.name = name; }
  public Object apply(Object method, Object argument) {
    throw new UnsupportedOperationException("the catalog " + name + " was detached from the session: attach it again");
  }
}
