"""Objects in one short line, with the arguments that were given."""

from __future__ import annotations

from dataclasses import dataclass, field

from icefield.base.notebooks import short_repr
from icefield.schema import Schema
from icefield.types import LongType, NestedField, StructType


@dataclass(repr=False)
class Example:
    first: int = 1
    names: tuple[str, ...] = ()
    options: dict[str, str] = field(default_factory=dict)
    hidden: str = field(default="x", repr=False)

    __repr__ = short_repr


def test_fields_with_their_defaults_and_hidden_ones_are_left_out() -> None:
    assert repr(Example()) == "Example()"
    assert repr(Example(2, ("a",), {"k": "v"}, "secret")) == "Example(first=2, names=('a',), options={'k': 'v'})"


def test_long_values_are_shortened() -> None:
    shown = repr(Example(names=tuple("x" * 1_000 for _ in range(1_000))))
    assert len(shown) < 2_000
    assert "..." in shown


def test_a_wide_schema_states_its_first_columns_and_the_number_of_others() -> None:
    wide = StructType(*(NestedField(10_000 + i, f"f{i}", LongType()) for i in range(5_000)))
    assert repr(Schema()) == "Schema(schema_id=0, identifier_field_ids=())"
    fields = [NestedField(i, f"c{i}", LongType() if i > 1 else wide) for i in range(1, 5_000)]
    shown = repr(Schema(*fields))
    assert "20: c20: optional long, ... 4,979 more, schema_id=0" in shown
    assert "c21:" not in shown
    assert len(shown) < 1_500
