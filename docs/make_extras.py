"""Write ``icefield/plugins/extras.py``: which extra of icefield brings which name that a plugin provides.

Run ``make reference``, or this file; a test compares what is committed with what it would write.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap
from typing import Any

from icefield import Plugins
from icefield_cli import Command

ROOT = Path(__file__).resolve().parents[1]
MODULE = ROOT / "framework/src/icefield/plugins/extras.py"

_HEAD = '''"""Which extra of icefield brings which name that a plugin provides, by kind and name.

Generated from the plugins' hooks and the extras in ``pyproject.toml`` by ``make reference``; do not edit.
"""

from __future__ import annotations

from typing import Final

_BROUGHT: Final = (
'''
_FOOT = ''')
"""An extra, a kind, and the names of that kind that the extra brings, separated by blanks."""

EXTRAS: Final = {(kind, name): extra for extra, kind, names in _BROUGHT for name in names.split(" ")}
'''


def module() -> str:
    """The source of the module."""
    names: dict[tuple[str, str], list[str]] = {}
    for (kind, name), extra in sorted(_extras().items()):
        names.setdefault((kind, extra), []).append(name)
    lines = (
        f'    ("{extra}", "{kind}", "{part}"),\n'
        for (kind, extra), given in sorted(names.items())
        for part in wrap(" ".join(given), 80, break_on_hyphens=False)
    )
    return f"{_HEAD}{''.join(lines)}{_FOOT}"


def _hooks() -> Iterator[tuple[dict[str, Any], str]]:
    """The modules of hooks, each with the project of its plugin."""
    for folder in sorted((ROOT / "plugins").iterdir()):
        project = _project(folder)
        for hooks in project.get("entry-points", {}).get("icefield", {}).values():
            yield project, hooks


def _extras() -> dict[tuple[str, str], str]:
    brought = _project(ROOT)["optional-dependencies"]
    found: dict[tuple[str, str], str] = {}
    for project, hooks in _hooks():
        (plugin,) = Plugins([hooks]).listing()
        if plugin.error is not None:
            raise ImportError(f"{project['name']} cannot be loaded: {plugin.error}")
        extra = _smallest(brought, project["name"])
        for each in (*plugin.provides, *_commands(hooks)):
            if found.setdefault(each, extra) != extra:
                raise ValueError(f"both {found[each]} and {extra} bring {each}")
    return found


def _commands(hooks: str) -> list[tuple[str, str]]:
    """The commands that a plugin adds to the command line, as names of a kind."""
    if hooks == "icefield_cli.hooks":  # without it, there is no command line
        return []
    plugins = Plugins([hooks, "icefield_cli.hooks"])
    records = plugins.records("icefield_commands", Command)
    return [("commands", record.name) for plugin, record in records if plugin.name == hooks]


def _smallest(brought: dict[str, list[str]], distribution: str) -> str:
    """The extra that brings a distribution, and as little else as any that does."""
    names = {extra: [re.split(r"[^\w-]", each)[0] for each in given] for extra, given in brought.items()}
    return min((extra for extra, given in names.items() if distribution in given), key=lambda extra: len(names[extra]))


def _project(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    return found


if __name__ == "__main__":
    MODULE.write_text(module(), "utf-8")
    print(f"wrote {MODULE.relative_to(ROOT)}")
