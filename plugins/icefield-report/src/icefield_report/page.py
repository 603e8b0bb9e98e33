"""The page, from templates that escape all values."""

from __future__ import annotations

from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from icefield_report import formats


def _printable(value: Any) -> Any:
    """A value of a page without control characters, which HTML forbids. Markup comes from this plugin and stays."""
    if not isinstance(value, str) or hasattr(value, "__html__"):
        return value
    return formats.printable(value)


ENVIRONMENT: Final = Environment(
    loader=PackageLoader("icefield_report"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    finalize=_printable,
)
"""The templates of pages; other plugins add theirs by ``overlay``."""

ENVIRONMENT.filters.update(
    size=formats.size, count=formats.count, share=formats.share, time=formats.time, short=formats.short
)


def part(macro: str, *values: Any) -> Any:
    """A part of a page, by a macro of ``parts.html``."""
    return getattr(ENVIRONMENT.get_template("parts.html").module, macro)(*values)


def rendered(template: str, **values: Any) -> str:
    """A page of a template."""
    return ENVIRONMENT.get_template(template).render(**values)
