"""Names, strings and types as Spark reads them. A table's names and values get into SQL only through this module."""

from __future__ import annotations

import re
from typing import Final

from pyspark.sql import types as spark

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_READ_ALIKE: Final = re.compile(r"[ !#%&()*+,./0-9:;<=>?@A-Z\[\]^_a-z|~-]*")


def quoted(*parts: str) -> str:
    """A name as Spark reads it; it may contain any characters."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def spelt(*parts: str) -> str:
    """A name as Spark reads it, with quotes only around parts that need them."""
    return ".".join(part if _PLAIN.fullmatch(part) else quoted(part) for part in parts)


def literal(value: str) -> str:
    """A string as statements show it, and as Spark reads it where its settings are the default ones."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def constant(value: str) -> str:
    """A string as an expression that Spark reads alike under all settings of the session.

    Escapes, doubled quotes and ``${...}`` mean different things under different settings. Bytes do not.
    """
    if _READ_ALIKE.fullmatch(value):
        return f"'{value}'"
    return f"CAST(X'{value.encode('utf-8', 'surrogatepass').hex()}' AS STRING)"


def spelt_type(kind: spark.DataType) -> str:
    """A type as Spark reads it; names of nested fields may contain any characters."""
    if isinstance(kind, spark.StructType):
        return f"STRUCT<{', '.join(f'{quoted(each.name)}: {spelt_type(each.dataType)}' for each in kind.fields)}>"
    if isinstance(kind, spark.ArrayType):
        return f"ARRAY<{spelt_type(kind.elementType)}>"
    if isinstance(kind, spark.MapType):
        return f"MAP<{spelt_type(kind.keyType)}, {spelt_type(kind.valueType)}>"
    return kind.simpleString()
