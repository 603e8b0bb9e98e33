"""Write the picture in ``docs/architecture.md``: the rooms of the kernel, from the layers that import-linter checks.

Run ``make reference``, or this file; a test compares what is committed with what it would write.
"""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/architecture.md"
KERNEL = ROOT / "framework/src/icefield"
BEGIN, END = "<!-- picture: begin -->\n", "<!-- picture: end -->\n"


def layers() -> list[list[str]]:
    """The rooms of each layer, from the top down."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    (kernel,) = (contract for contract in contracts if contract["type"] == "layers")
    return [[room.strip() for room in layer.split("|")] for layer in kernel["layers"]]


def picture() -> str:
    """One line a room, with what its package says of itself; a rule between the layers."""
    width = max(len(room) for layer in layers() for room in layer)
    rule = "-" * 110
    rows = [[f"{room:<{width}}  {_summary(room)}" for room in layer] for layer in layers()]
    return "```text\n" + f"\n{rule}\n".join("\n".join(layer) for layer in rows) + "\n```\n"


def page() -> str:
    """The page with the picture of today."""
    string = PAGE.read_text("utf-8")
    before, after = string.split(BEGIN)[0], string.split(END)[1]
    return f"{before}{BEGIN}\n{picture()}\n{END}{after}"


def _summary(room: str) -> str:
    path = KERNEL / room / "__init__.py" if (KERNEL / room).is_dir() else KERNEL / f"{room}.py"
    return (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").split("\n")[0]


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
