"""The forms in which notebooks and terminals show an object."""

from __future__ import annotations

import reprlib
from dataclasses import MISSING, Field, fields
from importlib import import_module
from typing import Any

from icefield.base.secrets import without_userinfo


class _Short(reprlib.Repr):
    def repr_str(self, x: str, level: int) -> str:
        part = x if len(x) <= 1_000 else f"{x[:1_000]}@"  # a password that is cut in two ends by it
        return super().repr_str(without_userinfo(part), level)


_SHORT = _Short()
_SHORT.maxstring = _SHORT.maxother = 200


def html_of(shown: Any) -> str | None:
    """The object as HTML, made by a plugin; None without such a plugin.

    It is the method ``_repr_html_`` of a class whose objects are shown in notebooks.
    """
    plugins = import_module("icefield.plugins")  # in a higher layer
    html: str | None = plugins.Plugins.installed().html(shown)
    return html


def short_repr(shown: Any) -> str:
    """The object of a dataclass with the fields that differ from their defaults; long values are shortened.

    It is the method ``__repr__`` of a class with many fields, or with long ones.
    """
    given = {each: getattr(shown, each.name) for each in fields(shown) if each.repr}
    parts = (f"{each.name}={_SHORT.repr(value)}" for each, value in given.items() if value != _default(each))
    return f"{type(shown).__name__}({', '.join(parts)})"


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()
