"""The partition tuples of all specs of a table as one struct, with every partition field once."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from icefield.base.concurrency import lazy
from icefield.manifest.columns import struct_array
from icefield.manifest.entries import partition_tuples, take
from icefield.metadata import TableMetadata
from icefield.partitioning import PartitionSpec
from icefield.partitioning.spec import normalised_key
from icefield.partitioning.transforms import VoidTransform
from icefield.schema import Schema
from icefield.types import IcebergType, NestedField, StructType, UnknownType
from icefield.types.arrow.equality import Ints
from icefield.types.arrow.types import to_arrow_type
from icefield.types.values import to_arrow_array


class UnitedPartition:
    """One struct for the partition tuples of several specs, with fields distinguished by id.

    ``types`` are the partition types of the specs, by spec id. If two fields share a name, the older one has its id
    appended. A field that version 1 dropped remains as void, with its source's type and only nulls; its type is taken
    from the specs with values.
    """

    def __init__(self, specs: Iterable[PartitionSpec], types: Mapping[int, StructType]) -> None:
        fields: dict[int, NestedField] = {}
        self._types = types
        self._valued: dict[int, dict[int, int]] = {}
        for spec in sorted(specs, key=lambda spec: spec.spec_id):
            places = self._valued[spec.spec_id] = {}
            for place, (field, typed) in enumerate(zip(spec.fields, types[spec.spec_id].fields, strict=True)):
                known = fields.get(field.field_id)
                if not isinstance(field.transform, VoidTransform):
                    places[field.field_id] = place
                elif known is not None:
                    typed = NestedField(field.field_id, field.name, known.field_type)
                fields[field.field_id] = typed
        ordered = [fields[number] for number in sorted(fields)]
        latest = {field.name: field.field_id for field in ordered}
        self.type = StructType(
            *(
                field
                if latest[field.name] == field.field_id
                else NestedField(field.field_id, f"{field.name}_{field.field_id}", field.field_type)
                for field in ordered
            )
        )

    @classmethod
    def of(cls, metadata: TableMetadata, schema: Schema | None = None) -> UnitedPartition:
        """The partition tuples of all specs of a table, by the types of ``schema``, by default the current one."""
        current, older = schema or metadata.schema(), list(metadata.schemas)
        specs = metadata.partition_specs
        return cls(specs, {spec.spec_id: spec.partition_type(current, older) for spec in specs})

    @lazy
    def arrow_type(self) -> pa.StructType:
        """The Arrow type of the struct."""
        return to_arrow_type(self.type)

    def place(self, spec_id: int, name: str) -> int | None:
        """The index of the field of this name in the tuples of a spec; None if the spec lacks it, or has it as void."""
        return self._valued[spec_id].get(self._field(name).field_id)

    def kind(self, name: str) -> IcebergType:
        """The type of the field of this name."""
        return self._field(name).field_type

    def tuples(self, spec_id: int, partition: pa.StructArray) -> pa.StructArray:
        """Partition tuples of one spec as the united struct; null in fields that the spec lacks, or has as void.

        Fields of unknown type are null, too, as in Java: no schema of the table has their source any more.
        """
        places = self._valued[spec_id]
        if partition.type == self.arrow_type and len(places) == len(self.type.fields):
            return partition
        children = []
        for wanted, field in zip(self.type.fields, self.arrow_type, strict=True):
            place = places.get(wanted.field_id)
            if place is None or isinstance(wanted.field_type, UnknownType):
                children.append(pa.nulls(len(partition), field.type))
            else:
                child = partition.field(place)
                children.append(child if child.type == field.type else child.cast(field.type))
        return struct_array(children, list(self.arrow_type), len(partition))

    def of_values(self, spec_id: int, partitions: Sequence[tuple[Any, ...]]) -> pa.StructArray:
        """Partition tuples of one spec, of internal values, as the united struct."""
        return self.tuples(spec_id, to_arrow_array(self._types[spec_id], partitions))

    def _field(self, name: str) -> NestedField:
        return next(field for field in self.type.fields if field.name == name)


def partition_keys(spec_id: int, partition: pa.StructArray, rows: Ints) -> list[tuple[Hashable, ...]]:
    """The table-wide partition keys of these rows: the spec id and the normalised tuple."""
    tuples = partition_tuples(take(partition, pa.array(rows)))
    return [(spec_id, *normalised_key(values)) for values in tuples]
