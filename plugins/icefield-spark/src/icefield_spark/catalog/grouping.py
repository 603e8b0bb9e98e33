"""Groups of a scan's files by partition values: by these, Spark joins tables with equal partitioning without a shuffle.

A job asks for them with Spark's setting ``spark.sql.iceberg.planning.preserve-data-grouping``, as with Iceberg's Java
runtime.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from icefield import Schema
from icefield import types as iceberg
from icefield.partitioning import PartitionField, PartitionSpec
from icefield.scan import FileScanTask
from icefield.types import IcebergType
from pyspark.sql.types import StructField, StructType

from icefield_spark.catalog.described import partitioning
from icefield_spark.roads.literals import in_json
from icefield_spark.types import to_spark_type

MOST_GROUPS: Final = 1000
"""Each group costs the driver about 10 ms."""

Key = tuple[Any, ...]

_KINDS = (
    iceberg.BooleanType,
    iceberg.IntegerType,
    iceberg.DateType,
    iceberg.LongType,
    iceberg.TimestampType,
    iceberg.TimestamptzType,
    iceberg.StringType,
    iceberg.DecimalType,
)


@dataclass(frozen=True)
class Grouping:
    """The partition fields that all files of a scan have in common, and the files by their values."""

    fields: tuple[PartitionField, ...]
    kinds: tuple[IcebergType, ...]
    tasks: Mapping[Key, Sequence[FileScanTask]]

    def described(self, schema: Schema) -> dict[str, Any]:
        """The transforms, the number of groups and the types of their values, as JSON for Spark."""
        types = StructType([StructField(f"of_{at}", to_spark_type(kind)) for at, kind in enumerate(self.kinds)])
        by = partitioning(schema, self.fields)
        return {"by": by, "groups": len(self.tasks), "types": types.jsonValue()}

    def row(self, key: Key) -> str:
        """The values of a group, as JSON for Spark."""
        return json.dumps([in_json(kind, value) for kind, value in zip(self.kinds, key, strict=True)])

    def narrowed(self, tasks: Iterable[FileScanTask]) -> Grouping:
        """The same grouping of fewer files.

        The partition fields stay the same, since Spark has planned its join by them.
        """
        left = {task.file.file_path: task for task in tasks}
        kept = {
            key: [left[task.file.file_path] for task in given if task.file.file_path in left]
            for key, given in self.tasks.items()
        }
        return replace(self, tasks={key: given for key, given in kept.items() if given})


def grouping(
    schema: Schema, specs: Mapping[int, PartitionSpec], columns: Collection[str], tasks: Iterable[FileScanTask]
) -> Grouping | None:
    """Group tasks by partition values that all of them have of some columns; None if Spark could not use the groups."""
    tasks = list(tasks)
    if not tasks or len({task.file.file_path for task in tasks}) < len(tasks):
        return None
    used = [specs[spec_id] for spec_id in sorted({task.file.spec_id for task in tasks})]
    fields = [field for field in used[-1].fields if _serves(schema, field, columns)]
    known = {spec.spec_id: {each.definition: place for place, each in enumerate(spec.fields)} for spec in used}
    fields = [field for field in fields if all(field.definition in places for places in known.values())]
    if not fields:
        return None
    places = {spec_id: [found[field.definition] for field in fields] for spec_id, found in known.items()}
    groups: dict[Key, list[FileScanTask]] = {}
    for task in tasks:
        values = task.file.partition
        groups.setdefault(tuple(values[place] for place in places[task.file.spec_id]), []).append(task)
    if len(groups) > MOST_GROUPS:
        return None
    kinds = tuple(_result(schema, field) for field in fields)
    return Grouping(tuple(fields), kinds, groups)


def _result(schema: Schema, field: PartitionField) -> IcebergType:
    return field.transform.result_type(schema.id_to_field[field.source_id].field_type)


def _serves(schema: Schema, field: PartitionField, columns: Collection[str]) -> bool:
    """Whether Spark can group by a partition field: it reads the column, and knows the transform and the values' type.

    Spark can join by buckets, and by transforms whose only argument is a column. A field of the transform truncate
    would prevent that.
    """
    if (
        not field.is_known
        or str(field.transform).startswith(("void", "truncate"))
        or field.source_id not in schema.id_to_field
    ):
        return False
    return schema.find_column_name(field.source_id) in columns and isinstance(_result(schema, field), _KINDS)
