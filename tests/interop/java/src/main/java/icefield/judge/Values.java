package icefield.judge;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.iceberg.StructLike;
import org.apache.iceberg.data.GenericRecord;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.Types;
import org.apache.iceberg.util.DateTimeUtil;
import org.apache.iceberg.util.UUIDUtil;
import org.apache.iceberg.variants.Variant;
import org.apache.iceberg.variants.VariantMetadata;
import org.apache.iceberg.variants.VariantValue;

/**
 * Values as JSON: numbers for what is stored as a number (days, microseconds, nanoseconds), text for decimals and for
 * floats that JSON lacks, hex for bytes, objects for structs, pairs for maps. A variant is an object of its two parts.
 */
final class Values {
  private static final JsonNodeFactory JSON = JsonNodeFactory.instance;
  private static final HexFormat HEX = HexFormat.of();

  private Values() {}

  static JsonNode toJson(Type type, Object value) {
    if (value == null) {
      return JSON.nullNode();
    }
    switch (type.typeId()) {
      case BOOLEAN:
        return JSON.booleanNode((Boolean) value);
      case INTEGER:
        return JSON.numberNode((Integer) value);
      case LONG:
        return JSON.numberNode((Long) value);
      case FLOAT:
        return real(((Float) value).doubleValue());
      case DOUBLE:
        return real((Double) value);
      case DECIMAL:
        return JSON.textNode(((BigDecimal) value).toPlainString());
      case DATE:
        return JSON.numberNode(DateTimeUtil.daysFromDate((LocalDate) value));
      case TIME:
        return JSON.numberNode(DateTimeUtil.microsFromTime((LocalTime) value));
      case TIMESTAMP:
        return JSON.numberNode(
            ((Types.TimestampType) type).shouldAdjustToUTC()
                ? DateTimeUtil.microsFromTimestamptz((OffsetDateTime) value)
                : DateTimeUtil.microsFromTimestamp((LocalDateTime) value));
      case TIMESTAMP_NANO:
        return JSON.numberNode(
            ((Types.TimestampNanoType) type).shouldAdjustToUTC()
                ? DateTimeUtil.nanosFromTimestamptz((OffsetDateTime) value)
                : DateTimeUtil.nanosFromTimestamp((LocalDateTime) value));
      case STRING:
        return JSON.textNode(value.toString());
      case UUID:
        return JSON.textNode(HEX.formatHex(UUIDUtil.convert((UUID) value)));
      case FIXED:
        return JSON.textNode(HEX.formatHex((byte[]) value));
      case BINARY:
        ByteBuffer buffer = ((ByteBuffer) value).duplicate();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return JSON.textNode(HEX.formatHex(bytes));
      case STRUCT:
        return structToJson(type.asStructType(), (StructLike) value);
      case LIST:
        ArrayNode items = JSON.arrayNode();
        for (Object item : (List<?>) value) {
          items.add(toJson(type.asListType().elementType(), item));
        }
        return items;
      case MAP:
        Types.MapType map = type.asMapType();
        ArrayNode pairs = JSON.arrayNode();
        ((Map<?, ?>) value)
            .forEach(
                (key, held) ->
                    pairs.addArray().add(toJson(map.keyType(), key)).add(toJson(map.valueType(), held)));
        return pairs;
      case VARIANT:
        Variant variant = (Variant) value;
        ByteBuffer names = littleEndian(variant.metadata().sizeInBytes());
        variant.metadata().writeTo(names, 0);
        ByteBuffer held = littleEndian(variant.value().sizeInBytes());
        variant.value().writeTo(held, 0);
        return JSON.objectNode()
            .put("metadata", HEX.formatHex(names.array()))
            .put("value", HEX.formatHex(held.array()));
      default:
        throw new UnsupportedOperationException("values of " + type);
    }
  }

  private static ByteBuffer littleEndian(int size) {
    return ByteBuffer.allocate(size).order(ByteOrder.LITTLE_ENDIAN);
  }

  static ObjectNode structToJson(Types.StructType type, StructLike value) {
    ObjectNode made = JSON.objectNode();
    List<Types.NestedField> fields = type.fields();
    for (int at = 0; at < fields.size(); at += 1) {
      made.set(fields.get(at).name(), toJson(fields.get(at).type(), value.get(at, Object.class)));
    }
    return made;
  }

  static Object fromJson(Type type, JsonNode json) {
    if (json == null || json.isNull()) {
      return null;
    }
    switch (type.typeId()) {
      case BOOLEAN:
        return json.booleanValue();
      case INTEGER:
        return json.intValue();
      case LONG:
        return json.longValue();
      case FLOAT:
        return (float) realOf(json);
      case DOUBLE:
        return realOf(json);
      case DECIMAL:
        return new BigDecimal(json.textValue());
      case DATE:
        return DateTimeUtil.dateFromDays(json.intValue());
      case TIME:
        return DateTimeUtil.timeFromMicros(json.longValue());
      case TIMESTAMP:
        return ((Types.TimestampType) type).shouldAdjustToUTC()
            ? DateTimeUtil.timestamptzFromMicros(json.longValue())
            : DateTimeUtil.timestampFromMicros(json.longValue());
      case TIMESTAMP_NANO:
        return ((Types.TimestampNanoType) type).shouldAdjustToUTC()
            ? DateTimeUtil.timestamptzFromNanos(json.longValue())
            : DateTimeUtil.timestampFromNanos(json.longValue());
      case STRING:
        return json.textValue();
      case UUID:
        return UUIDUtil.convert(HEX.parseHex(json.textValue()));
      case FIXED:
        return HEX.parseHex(json.textValue());
      case BINARY:
        return ByteBuffer.wrap(HEX.parseHex(json.textValue()));
      case STRUCT:
        return structFromJson(type.asStructType(), json);
      case LIST:
        List<Object> items = new ArrayList<>();
        json.forEach(item -> items.add(fromJson(type.asListType().elementType(), item)));
        return items;
      case MAP:
        Types.MapType map = type.asMapType();
        Map<Object, Object> entries = new LinkedHashMap<>();
        json.forEach(
            pair ->
                entries.put(fromJson(map.keyType(), pair.get(0)), fromJson(map.valueType(), pair.get(1))));
        return entries;
      case VARIANT:
        VariantMetadata metadata = VariantMetadata.from(bytesOf(json.get("metadata")));
        return Variant.of(metadata, VariantValue.from(metadata, bytesOf(json.get("value"))));
      default:
        throw new UnsupportedOperationException("values of " + type);
    }
  }

  private static ByteBuffer bytesOf(JsonNode json) {
    return ByteBuffer.wrap(HEX.parseHex(json.textValue())).order(ByteOrder.LITTLE_ENDIAN);
  }

  static GenericRecord structFromJson(Types.StructType type, JsonNode json) {
    GenericRecord made = GenericRecord.create(type);
    List<Types.NestedField> fields = type.fields();
    for (int at = 0; at < fields.size(); at += 1) {
      made.set(at, fromJson(fields.get(at).type(), json.get(fields.get(at).name())));
    }
    return made;
  }

  private static JsonNode real(double value) {
    return Double.isFinite(value) ? JSON.numberNode(value) : JSON.textNode(Double.toString(value));
  }

  private static double realOf(JsonNode json) {
    return json.isTextual() ? Double.parseDouble(json.textValue()) : json.doubleValue();
  }
}
