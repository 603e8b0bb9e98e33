"""Compilation of a writer's schema and a selection to steps."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from icefield_avro.nodes import (
    SIZED,
    VARINTS,
    Array,
    Map,
    Node,
    Optional,
    Primitive,
    Record,
    encoded_entry,
    item_size,
    reach,
)
from icefield_avro.selection import Selection
from icefield_avro.skipping import Budget, skipper
from icefield_avro.vectorized.encoded_maps import EncodedStep
from icefield_avro.vectorized.int_maps import IntMapStep
from icefield_avro.vectorized.nested import ArrayStep, FixedItems, Layout, MapStep, RecordStep
from icefield_avro.vectorized.steps import FixedStep, NullStep, OptionalStep, SizedStep, Step, VarintStep

MAX_REACH: Final = 1 << 20


class Unfit(Exception):
    """The schema should be decoded row by row: it has records or items without bytes, or with huge fixed values."""


def build(record: Record, selection: Selection) -> RecordStep:
    """The steps of a record. Raises ``Unfit``."""
    if not 0 < reach(record) <= MAX_REACH:
        raise Unfit
    return _record(record, selection)


def _record(record: Record, selection: Selection | None) -> RecordStep:
    steps: list[Step] = []
    return RecordStep(steps, _lay_out(record, selection, steps))


def _lay_out(record: Record, selection: Selection | None, steps: list[Step]) -> Layout:
    places: list[int | Layout] = []
    for index, field in enumerate(record.fields):
        child = selection.children[index] if selection is not None else None
        if isinstance(field.node, Record):
            places.append(_lay_out(field.node, child, steps))
        else:
            places.append(len(steps))
            steps.append(_step(field.node, child))
    if selection is None:
        return Layout(pa.null(), [])
    return Layout(selection.type, [places[index] for index in selection.order])


def _step(node: Node, selection: Selection | None) -> Step:
    match node:
        case Optional():
            return OptionalStep(node, _step(node.inner, selection), _type(selection))
        case Record():
            return _record(node, selection)
        case Array() | Map() if pa.types.is_binary(_type(selection)):
            return _encoded(node)
        case Array():
            return _array(node, selection)
        case Map():
            return _map(node, selection)
        case Primitive():
            return _primitive(node)


def _type(selection: Selection | None) -> pa.DataType:
    return pa.null() if selection is None else selection.type


def _primitive(node: Primitive) -> Step:
    if node.wire == "null":
        return NullStep()
    if node.wire in VARINTS:
        return VarintStep(node)
    return SizedStep(node) if node.wire in SIZED else FixedStep(node)


def _array(node: Array, selection: Selection | None) -> Step:
    size = item_size(node)
    if not size:
        raise Unfit
    item = _step(node.item.node, selection.child(0) if selection is not None else None)
    if isinstance(item, FixedStep):
        return FixedItems(item, _type(selection))
    return ArrayStep(item, size, skipper(node.item.node, Budget()), _type(selection))


def _encoded(node: Array | Map) -> Step:
    """A map as the bytes of its encoding. Raises ``Unfit`` for a map that must be encoded anew."""
    key, value = encoded_entry(node) or (None, None)
    if isinstance(key, Primitive) and isinstance(value, Primitive) and key.wire == "int" and value.wire != "fixed":
        return EncodedStep(_step(node, None), integers=value.wire in VARINTS)
    raise Unfit


def _map(node: Map, selection: Selection | None) -> Step:
    size = item_size(node)
    if not size:
        raise Unfit
    entry = Record((node.key, node.value))
    key = _step(node.key.node, selection.child(0) if selection is not None else None)
    value = _step(node.value.node, selection.child(1) if selection is not None else None)
    slow_skip = skipper(entry, Budget())
    if isinstance(key, VarintStep) and key.node.wire != "enum" and key.node.factor == 1:
        keys = selection.keys if selection is not None else None
        return IntMapStep(key, value, size, slow_skip, _type(selection), keys)
    if selection is None:
        return ArrayStep(RecordStep([key, value], Layout(pa.null(), [])), size, slow_skip, pa.null())
    return MapStep(key, value, size, slow_skip, selection.type)
