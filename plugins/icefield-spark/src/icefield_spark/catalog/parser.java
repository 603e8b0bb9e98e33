package icefield.spark;
import java.util.Arrays;
import java.util.function.BiFunction;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerApplicationEnd;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;

/** Makes the parser of a session, around the one that the session has without it. */
public class Parsers extends scala.runtime.AbstractFunction2 {
  private volatile BiFunction python;

  public void answeredBy(BiFunction python, SparkContext context) {
    this.python = python;
    context.addSparkListener(new EndOfParsers(this));
  }

  /** Let go of Python's object when Spark is stopped: the JVM may keep the session. */
  void forget() { python = null; }

  public Object apply(Object session, Object parser) {
    return new SessionParser(this, session, (ParserInterface) parser);
  }

  String rewritten(Object session, String text, ParseException refused) throws ParseException {
    BiFunction asked = python;
    Object said = asked == null ? null : asked.apply("rewrite", Arrays.asList(new Object[] {session, text}));
    if (!(said instanceof String) || ((String) said).startsWith("!")) throw refused;
    return (String) said;
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
