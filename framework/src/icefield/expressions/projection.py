"""Projects a filter on rows to a filter on partitions.

*Inclusive*: if a row matches the filter, its partition matches the projection (other partitions may as well).
*Strict*: if a partition matches the projection, all its rows match the filter.

A projection is an expression bound to the spec's partition type; its paths are the names of the partition fields.
Several fields of one column work together: inclusive projections are joined by ``and``, strict ones by ``or``. A
field with an unknown transform or with several source columns is ignored. Spec: Scan Planning.
"""

from __future__ import annotations

from icefield.expressions.bound import BoundPredicate, map_leaves
from icefield.expressions.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    BooleanExpression,
    Op,
    conjunction,
    disjunction,
)
from icefield.expressions.rounding_projection import among, on, project_ordered, project_prefix
from icefield.partitioning import PartitionSpec
from icefield.partitioning.transforms import (
    BucketTransform,
    DayTransform,
    IdentityTransform,
    TemporalTransform,
    Transform,
    TruncateTransform,
)
from icefield.schema import Schema
from icefield.types import BinaryType, DateType, IcebergType, NestedField, StringType

_Source = tuple[Transform, IcebergType, NestedField]


def inclusive_projection(spec: PartitionSpec, schema: Schema, expression: BooleanExpression) -> BooleanExpression:
    """The condition that the partition of each matching row satisfies; AlwaysTrue if the spec gives none.

    ``expression`` is bound to ``schema``. Raises ``InvalidExpression`` if it is not bound.
    """
    return map_leaves(expression, Projector(spec, schema).inclusive)


def strict_projection(spec: PartitionSpec, schema: Schema, expression: BooleanExpression) -> BooleanExpression:
    """A condition under which all rows of a partition match; AlwaysFalse if the spec gives none.

    ``expression`` is bound to ``schema``. Raises ``InvalidExpression`` if it is not bound.
    """
    return map_leaves(expression, Projector(spec, schema).strict)


class Projector:
    """Projects single predicates through one spec."""

    def __init__(self, spec: PartitionSpec, schema: Schema) -> None:
        self._by_source: dict[int, list[_Source]] = {}
        targets = spec.partition_type(schema).fields
        for field, target in zip(spec.fields, targets, strict=True):
            source = schema.id_to_field.get(field.source_id)
            if field.is_known and source is not None and field.transform.can_transform(source.field_type):
                entry = (field.transform, source.field_type, target)
                self._by_source.setdefault(field.source_id, []).append(entry)

    def inclusive(self, leaf: BoundPredicate) -> BooleanExpression:
        """The condition that the partition of each row that passes the predicate satisfies."""
        return conjunction(self._projections(leaf, True))

    def strict(self, leaf: BoundPredicate) -> BooleanExpression:
        """A condition under which all rows of a partition pass the predicate."""
        return disjunction(self._projections(leaf, False))

    def _projections(self, leaf: BoundPredicate, inclusive: bool) -> list[BooleanExpression]:
        sources = self._by_source.get(leaf.field.field_id, ())
        found = (
            _project(transform, target, leaf, inclusive)
            for transform, source_type, target in sources
            if source_type == leaf.field.field_type
        )
        nothing = AlwaysTrue() if inclusive else AlwaysFalse()
        return [nothing if one is None else one for one in found]


def _project(
    transform: Transform, target: NestedField, leaf: BoundPredicate, inclusive: bool
) -> BooleanExpression | None:
    """The projection through one transform, or None where it has none."""
    source = leaf.field.field_type
    is_day_of_date = isinstance(transform, DayTransform) and isinstance(source, DateType)
    if isinstance(transform, IdentityTransform) or is_day_of_date:
        return _project_identity(target, leaf, inclusive)
    if not isinstance(transform, BucketTransform | TruncateTransform | TemporalTransform):
        return None
    if leaf.op in (Op.IS_NULL, Op.NOT_NULL):
        # These transforms give null for null and for nothing else.
        return on(target, leaf.op)
    if isinstance(transform, BucketTransform):
        return _project_bucket(transform, target, leaf, inclusive)
    if isinstance(transform, TruncateTransform) and isinstance(source, StringType | BinaryType):
        return project_prefix(transform.width, target, leaf, inclusive)
    return project_ordered(transform, target, leaf, inclusive)


def _project_identity(target: NestedField, leaf: BoundPredicate, inclusive: bool) -> BooleanExpression:
    same = on(target, leaf.op, leaf.value)
    if inclusive and leaf.is_floating and leaf.op in (Op.GT, Op.GT_EQ):
        # NaN is not greater here, but it is in other engines, which prune by this projection too.
        return same | same.replace(Op.IS_NAN)
    return same


def _project_bucket(
    transform: BucketTransform, target: NestedField, leaf: BoundPredicate, inclusive: bool
) -> BooleanExpression | None:
    """Equal values share a bucket, and different buckets hold different values; the order of buckets means nothing."""
    if leaf.op not in ((Op.EQ, Op.IN) if inclusive else (Op.NOT_EQ, Op.NOT_IN)):
        return None
    values = leaf.value if leaf.op.is_set else (leaf.value,)
    buckets = [transform.apply_value(value, leaf.field.field_type) for value in values]
    return among(target, buckets, negated=not inclusive)
