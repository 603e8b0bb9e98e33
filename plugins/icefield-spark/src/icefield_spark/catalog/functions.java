import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.LocalDate;
import java.util.Arrays;
import java.util.Locale;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.hash.Murmur3_x86_32;
import org.apache.spark.unsafe.types.UTF8String;

/** The functions of a catalog, in its namespace "system": Iceberg's transforms, and the version of Icefield. */
class Functions {
  static final String[] NAMES = {"bucket", "days", "hours", "iceberg_version", "months", "truncate", "years"};

  /** As in Iceberg's Java runtime, the functions are also found without a namespace. */
  static boolean areIn(String[] namespace) {
    return namespace.length == 0 || namespace.length == 1 && namespace[0].equalsIgnoreCase("system");
  }

  static Identifier[] in(String[] namespace) {
    Identifier[] made = new Identifier[NAMES.length];
    for (int at = 0; at < made.length; at++) made[at] = Identifier.of(namespace, NAMES[at]);
    return made;
  }

  static UnboundFunction load(Identifier identifier) throws NoSuchFunctionException {
    String name = identifier.name().toLowerCase(Locale.ROOT);
    if (!areIn(identifier.namespace()) || !Arrays.asList(NAMES).contains(name)) throw new NoSuchFunctionException(identifier);
    return new IcefieldFunction(name);
  }
}

/** A function before Spark knows the types of its arguments. */
class IcefieldFunction implements UnboundFunction {
  private final String name;
  IcefieldFunction(String name) { this.name = name; }

  public String name() { return name; }

  public String description() {
    if (name.equals("bucket")) return "bucket(count, value): the bucket of a value, from 0 to count - 1, by Iceberg's hash";
    if (name.equals("truncate")) return "truncate(width, value): a number down to a multiple of a width, or the start of a string or binary";
    if (name.equals("iceberg_version")) return "iceberg_version(): the version of Icefield";
    return name + "(value): the " + name + " from 1970 to a date or timestamp, in UTC" + (name.equals("days") ? ", as a date" : "");
  }

  public BoundFunction bind(StructType input) {
    ScalarFunction bound = bound(input);
    return bound instanceof TransformFunction && AppliedFunction.isNeeded() ? new AppliedFunction((TransformFunction) bound) : bound;
  }

  private ScalarFunction bound(StructType input) {
    StructField[] given = input.fields();
    int wanted = name.equals("iceberg_version") ? 0 : name.equals("bucket") || name.equals("truncate") ? 2 : 1;
    if (given.length != wanted) throw new UnsupportedOperationException(description());
    if (wanted == 0) return new Version();
    DataType type = given[wanted - 1].dataType();
    if (wanted == 2 && !isSmall(given[0].dataType()) && !(given[0].dataType() instanceof IntegerType))
      throw new UnsupportedOperationException(
          "the first argument of system." + name + " is an int, not " + given[0].dataType().catalogString());
    if (!takes(type)) throw new UnsupportedOperationException("system." + name + " takes no " + type.catalogString());
    if (name.equals("bucket")) return new Bucket(isSmall(type) ? DataTypes.IntegerType : type);
    if (name.equals("truncate")) return new Truncate(type);
    if (name.equals("years")) return new Years(type);
    if (name.equals("months")) return new Months(type);
    return name.equals("days") ? (ScalarFunction) new Days(type) : new Hours(type);
  }

  private static boolean isSmall(DataType type) { return type instanceof ByteType || type instanceof ShortType; }

  private boolean takes(DataType type) {
    boolean isMoment = type instanceof TimestampType || type instanceof TimestampNTZType;
    boolean isValue = isSmall(type) || type instanceof IntegerType || type instanceof LongType || type instanceof DecimalType
        || type instanceof StringType || type instanceof BinaryType;
    if (name.equals("truncate")) return isValue;
    if (name.equals("hours")) return isMoment;
    return isMoment || type instanceof DateType || name.equals("bucket") && isValue;
  }
}

/** A function of a value. Generated code calls its static methods "invoke", one for each of Spark's forms of values. */
abstract class TransformFunction implements ScalarFunction {
  private final String name;
  private final DataType[] types;
  private final DataType result;

  TransformFunction(String name, DataType[] types, DataType result) {
    this.name = name;
    this.types = types;
    this.result = result;
  }

  static DataType[] withWidth(DataType type) { return new DataType[] {DataTypes.IntegerType, type}; }

  public String name() { return name; }
  public DataType[] inputTypes() { return types; }
  public DataType resultType() { return result; }
  public String canonicalName() { return "icefield." + name + "(" + types[types.length - 1].catalogString() + ")"; }

  /** Spark compares calls by their functions, such as one in ORDER BY with one in GROUP BY. */
  public boolean equals(Object other) {
    return other instanceof TransformFunction && canonicalName().equals(((TransformFunction) other).canonicalName());
  }
  public int hashCode() { return canonicalName().hashCode(); }

  /** Negative ones compute what they compute in Iceberg's Java runtime. */
  static int checked(int width, String function) {
    if (width == 0) throw new IllegalArgumentException("the first argument of system." + function + " is at least 1, not 0");
    return width;
  }
}

public class Bucket extends TransformFunction {
  Bucket(DataType type) { super("bucket", withWidth(type), DataTypes.IntegerType); }

  public static int invoke(int count, int value) { return invoke(count, (long) value); }
  public static int invoke(int count, long value) { return of(Murmur3_x86_32.hashLong(value, 0), count); }
  public static Integer invoke(int count, UTF8String value) {
    if (value == null) return null;
    return Integer.valueOf(
        of(Murmur3_x86_32.hashUnsafeBytes2(value.getBaseObject(), value.getBaseOffset(), value.numBytes(), 0), count));
  }
  public static Integer invoke(int count, byte[] value) {
    if (value == null) return null;
    return Integer.valueOf(of(Murmur3_x86_32.hashUnsafeBytes2(value, Platform.BYTE_ARRAY_OFFSET, value.length, 0), count));
  }
  public static Integer invoke(int count, Decimal value) {
    return value == null ? null : invoke(count, value.toJavaBigDecimal().unscaledValue().toByteArray());
  }
  private static int of(int hash, int count) { return (hash & Integer.MAX_VALUE) % checked(count, "bucket"); }
}

/** Below the least number of a type numbers go on at the greatest. */
public class Truncate extends TransformFunction {
  Truncate(DataType type) { super("truncate", withWidth(type), type); }

  public static byte invoke(int width, byte value) { return (byte) invoke(width, (long) value); }
  public static short invoke(int width, short value) { return (short) invoke(width, (long) value); }
  public static int invoke(int width, int value) { return (int) invoke(width, (long) value); }
  public static long invoke(int width, long value) { return value - Math.floorMod(value, (long) checked(width, "truncate")); }
  public static UTF8String invoke(int width, UTF8String value) {
    return value == null ? null : value.substring(0, width);
  }
  public static byte[] invoke(int width, byte[] value) {
    return value == null ? null : Arrays.copyOf(value, Math.min(value.length, Math.max(0, width)));
  }
  public static Decimal invoke(int width, Decimal value) {
    if (value == null) return null;
    BigDecimal number = value.toJavaBigDecimal();
    BigInteger unscaled = number.unscaledValue();
    BigInteger by = BigInteger.valueOf(checked(width, "truncate"));
    BigInteger rest = unscaled.remainder(by).add(by).remainder(by);
    return Decimal.apply(new BigDecimal(unscaled.subtract(rest), number.scale()));
  }
}

/** A function of a date, which is the number of a day, or of a timestamp, in microseconds. */
abstract class TimeFunction extends TransformFunction {
  TimeFunction(String name, DataType type, DataType result) { super(name, new DataType[] {type}, result); }
  static int day(long micros) { return (int) Math.floorDiv(micros, 86400000000L); }
}

public class Years extends TimeFunction {
  Years(DataType type) { super("years", type, DataTypes.IntegerType); }
  public static int invoke(int day) { return LocalDate.ofEpochDay(day).getYear() - 1970; }
  public static int invoke(long micros) { return invoke(day(micros)); }
}

public class Months extends TimeFunction {
  Months(DataType type) { super("months", type, DataTypes.IntegerType); }
  public static int invoke(int day) { return (int) (LocalDate.ofEpochDay(day).getLong(java.time.temporal.ChronoField.PROLEPTIC_MONTH) - 23640L); }
  public static int invoke(long micros) { return invoke(day(micros)); }
}

public class Days extends TimeFunction {
  Days(DataType type) { super("days", type, DataTypes.DateType); }
  public static int invoke(int day) { return day; }
  public static int invoke(long micros) { return day(micros); }
}

public class Hours extends TimeFunction {
  Hours(DataType type) { super("hours", type, DataTypes.IntegerType); }
  public static int invoke(long micros) { return (int) Math.floorDiv(micros, 3600000000L); }
}

/** A function that Spark calls with a row, by the static methods of another one. */
class AppliedFunction implements ScalarFunction {
  private final TransformFunction of;
  private transient Method method;
  AppliedFunction(TransformFunction of) { this.of = of; }

  /** Spark 3.5 does not hand scans the conditions on functions with static methods. */
  static boolean isNeeded() {
    try {
      org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke.class.getMethod("scalarFunction", new Class[0]);
      return false;
    } catch (NoSuchMethodException missing) {
      return true;
    }
  }

  public String name() { return of.name(); }
  public DataType[] inputTypes() { return of.inputTypes(); }
  public DataType resultType() { return of.resultType(); }
  public String canonicalName() { return of.canonicalName(); }

  public Object produceResult(InternalRow row) {
    DataType[] types = of.inputTypes();
    Object[] given = new Object[types.length];
    for (int at = 0; at < given.length; at++) {
      given[at] = row.get(at, types[at]);
      if (given[at] == null) return null;
    }
    try {
      if (method == null) method = method(given[given.length - 1].getClass());
      return method.invoke(null, given);
    } catch (InvocationTargetException error) {
      throw (RuntimeException) error.getCause();
    } catch (IllegalAccessException error) {
      throw new IllegalStateException(error);
    }
  }

  private Method method(Class value) {
    Method[] methods = of.getClass().getMethods();
    for (int at = 0; at < methods.length; at++) {
      Class[] taken = methods[at].getParameterTypes();
      if (methods[at].getName().equals("invoke") && boxed(taken[taken.length - 1]) == value) return methods[at];
    }
    throw new IllegalStateException(name() + " takes no " + value);
  }

  private static Class boxed(Class type) {
    return type.isPrimitive() ? java.lang.reflect.Array.get(java.lang.reflect.Array.newInstance(type, 1), 0).getClass() : type;
  }
}

class Version implements ScalarFunction {
  public String name() { return "iceberg_version"; }
  public DataType[] inputTypes() { return new DataType[0]; }
  public DataType resultType() { return DataTypes.StringType; }
  public boolean isResultNullable() { return false; }
  public String canonicalName() { return "icefield.iceberg_version"; }
  public Object produceResult(InternalRow row) { return UTF8String.fromString("/*VERSION*/"); }
}
