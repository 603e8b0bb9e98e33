"""The hook that reports add. A plugin implements it with ``@icefield.hookimpl(optionalhook=True)``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from icefield import hookspec
from icefield.errors import InvalidArgument

_NAME: Final = re.compile(r"[a-z][a-z0-9-]*")


@dataclass(frozen=True, slots=True)
class ReportSection:
    """A section of the page about a table: its name, its heading, and the import path of its function.

    ``name`` is a part of the section's id: lower-case letters, digits and hyphens. A section without a ``title`` has no
    heading. ``target`` is ``"module:attribute"`` of a function; it is imported when a page is made. ``order`` is the
    place in the page: the sections of this plugin have 0 to 90.
    """

    name: str
    title: str
    target: str
    order: int = 50

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or ":" not in self.target:
            raise InvalidArgument(f"{self!r} is no ReportSection(name, title, 'module:attribute')")


@hookspec
def icefield_report_sections() -> Sequence[ReportSection]:  # type: ignore[empty-body]
    """Provide sections of the page about a table.

    Called when a page is made. A target is called with an ``icefield_report.SectionContext``. It returns a string,
    which is shown as text, or an object with ``__html__``, which is a part of the page as it is, or None to leave the
    section out. An exception is shown in place of the section.
    """
