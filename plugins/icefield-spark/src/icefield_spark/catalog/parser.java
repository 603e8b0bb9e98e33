package icefield.spark;
import java.util.Arrays;
import java.util.List;
import java.util.function.BiFunction;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerApplicationEnd;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/** Makes the parser of a session, around the one that the session has without it. */
public class Parsers extends scala.runtime.AbstractFunction2 {
  private volatile BiFunction python;
  private List taken;

  /** Ask Python about texts that Spark refuses, and about plans of the named classes. */
  public void answeredBy(BiFunction python, String[] taken, SparkContext context) {
    this.python = python;
    this.taken = Arrays.asList(taken);
    context.addSparkListener(new EndOfParsers(this));
  }

  /** Let go of Python's object when Spark is stopped: the JVM may keep the session. */
  void forget() { python = null; }

  public Object apply(Object session, Object parser) {
    return new SessionParser(this, session, (ParserInterface) parser);
  }

  /** The plan of a text that Spark refused. */
  LogicalPlan afterAll(Object session, String text, ParseException refused) throws ParseException {
    LogicalPlan made = ask("refused", session, text);
    if (made == null) throw refused;
    return made;
  }

  /** The plan of a statement that Spark parses: its own one, unless the statement is on a view of a catalog of ours. */
  LogicalPlan taken(Object session, LogicalPlan parsed) {
    if (parsed == null || !taken.contains(parsed.getClass().getSimpleName())) return parsed;
    LogicalPlan made = ask("parsed", session, parsed);
    return made == null ? parsed : made;
  }

  private LogicalPlan ask(String method, Object session, Object about) {
    BiFunction asked = python;
    Object said = asked == null ? null : asked.apply(method, Arrays.asList(new Object[] {session, about}));
    if (!(said instanceof String)) return (LogicalPlan) said;
    String error = (String) said;
    throw new IllegalArgumentException(error.substring(error.indexOf('\n') + 1));
  }
}

class EndOfParsers extends SparkListener {
  private final Parsers parsers;
  EndOfParsers(Parsers parsers) { this.parsers = parsers; }
  public void onApplicationEnd(SparkListenerApplicationEnd event) { parsers.forget(); }
}

/** Spark's parser, and the statements of Iceberg's own after it has refused a text. */
class SessionParser implements ParserInterface {
  private final Parsers parsers;
  private final Object session;
  private final ParserInterface parser;

  SessionParser(Parsers parsers, Object session, ParserInterface parser) {
    this.parsers = parsers;
    this.session = session;
    this.parser = parser;
  }

/*METHODS*/
}
