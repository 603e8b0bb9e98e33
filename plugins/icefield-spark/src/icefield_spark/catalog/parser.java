package icefield.spark;
import java.util.Arrays;
import java.util.function.BiFunction;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;

/** Makes the parser of a session, around the one that the session has without it. */
public class Parsers extends scala.runtime.AbstractFunction2 {
  private BiFunction python;
  public void answeredBy(BiFunction python) { this.python = python; }
  public Object apply(Object session, Object parser) {
    return new SessionParser(python, session, (ParserInterface) parser);
  }
}

/** Spark's parser, and the statements of Iceberg's own after it has refused a text. */
class SessionParser implements ParserInterface {
  private final BiFunction python;
  private final Object session;
  private final ParserInterface parser;

  SessionParser(BiFunction python, Object session, ParserInterface parser) {
    this.python = python;
    this.session = session;
    this.parser = parser;
  }

  private String rewritten(String text, ParseException refused) throws ParseException {
    Object said = python.apply("rewrite", Arrays.asList(new Object[] {session, text}));
    if (!(said instanceof String) || ((String) said).startsWith("!")) throw refused;
    return (String) said;
  }

/*METHODS*/
}
