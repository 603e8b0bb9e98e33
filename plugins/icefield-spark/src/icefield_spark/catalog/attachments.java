import java.lang.ref.WeakReference;
import java.util.Collections;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.function.BiFunction;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerApplicationEnd;

/** Which sessions answer for which attachment, so that nothing of Python's is held when it ends. */
class Attachments {
  private static final Set CATALOGS = Collections.newSetFromMap(new WeakHashMap());
  private static WeakReference listened = new WeakReference(null);

  /** The catalog of a session has another attachment; the earlier one goes with its last session. */
  static synchronized void changed(IcefieldCatalog catalog, String before, String now) {
    CATALOGS.add(catalog);
    if (before == null || before.equals(now)) return;
    Object[] all = CATALOGS.toArray();
    for (int at = 0; at < all.length; at++) if (all[at] != catalog && ((IcefieldCatalog) all[at]).hasKey(before)) return;
    Python.CATALOGS.remove(before);
  }

  /** End an attachment, or all where there is no key. */
  static synchronized void end(String key) {
    if (key == null) Python.CATALOGS.clear();
    else Python.CATALOGS.remove(key);
    Object[] all = CATALOGS.toArray();
    for (int at = 0; at < all.length; at++)
      if (key == null || ((IcefieldCatalog) all[at]).hasKey(key)) ((IcefieldCatalog) all[at]).forget();
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
