"""The fenced blocks of a Markdown page, and how their info strings have a test treat them.

- ``python``: run, in order, in one namespace a page;
- ``output``: what the block before it prints, with ``...`` for text that differs from run to run;
- ``python spark``: the same, where a Spark session may be started;
- ``python engines``: run by ``make engines``, where Ray, Daft and Dask are installed;
- ``python tools``: run by the tests of icefield-tools, which have dlt and Dagster, or of icefield-observe;
- ``python <path>``: a part of that file of the repository, word for word;
- ``console``: each line after ``$ `` is run by the command line; the lines below it, where there are any, are its
  output, with ``...`` for text that differs from run to run;
- ``toml <name>``: written to a file of that name before the following blocks are run;
- anything else is not run.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from icefield.base.concurrency import lazy
from repository import ROOT, tracked_files

_FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^(#{1,6}) +(.+?) *#*$", re.MULTILINE)
_LINK = re.compile(r"(?<!\!)\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"``.+?``|`[^`]+`")
_CHECKER = doctest.OutputChecker()


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, the rest of its info string, its text and the number of its first line."""

    language: str
    argument: str
    text: str
    line: int


@dataclass(frozen=True)
class Command:
    """A line of a console block, and the output that the page shows for it."""

    line: str
    printed: str

    def prints(self, output: str) -> bool:
        """Return whether the output agrees with the page."""
        return not self.printed or agrees(self.printed, output)


@dataclass(frozen=True)
class Page:
    """A Markdown file of the repository."""

    path: Path

    @lazy
    def text(self) -> str:
        """The text of the file."""
        return (ROOT / self.path).read_text("utf-8")

    @property
    def blocks(self) -> Iterator[Block]:
        """Its fenced blocks."""
        for found in _FENCE.finditer(self.text):
            language, _, argument = found["info"].strip().partition(" ")
            yield Block(language, argument.strip(), found["text"], self.text.count("\n", 0, found.start()) + 2)

    @property
    def prose(self) -> str:
        """The string without its fenced blocks."""
        return _FENCE.sub("", self.text)

    @property
    def headings(self) -> list[str]:
        """The strings of its headings."""
        return [found[2] for found in _HEADING.finditer(self.prose)]

    @property
    def anchors(self) -> set[str]:
        """The anchors that its headings make."""
        return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in self.headings}

    @property
    def links(self) -> list[str]:
        """The targets of its links."""
        return _LINK.findall(_CODE.sub("", self.prose))

    @property
    def runs(self) -> bool:
        """Whether the page has a block that runs without Spark."""
        return any(block.language == "console" or is_run(block) for block in self.blocks)

    @property
    def runs_spark(self) -> bool:
        """Whether anything of it needs Spark."""
        return any(block.language == "python" and block.argument == "spark" for block in self.blocks)


def agrees(printed: str, output: str) -> bool:
    """Whether output is what a page shows, where ``...`` stands for any text."""
    shown = "\n".join(line.rstrip() for line in output.splitlines()) + "\n"
    return _CHECKER.check_output(printed, shown, doctest.ELLIPSIS)


def pages() -> list[Page]:
    """Every Markdown page for readers of the repository."""
    return [
        Page(path)
        for path in tracked_files()
        if path.suffix == ".md" and (len(path.parts) == 1 or path.parts[0] in ("docs", "examples", "plugins"))
    ]


def is_run(block: Block) -> bool:
    """Whether a block is Python to run without Spark."""
    return block.language == "python" and not block.argument


def commands(block: Block) -> list[Command]:
    """The lines of a console block."""
    parts = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
    return [Command(line, printed) for line, _, printed in (part.partition("\n") for part in parts[1:])]


def run_page(path: Path) -> None:
    """Run the blocks of a page that are for data tools, and compare what they print with the page."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    printed = ""
    for block in Page(path).blocks:
        if (block.language, block.argument) == ("python", "tools"):
            with contextlib.redirect_stdout(io.StringIO()) as out:
                code = compile("\n" * (block.line - 1) + block.text, str(ROOT / path), "exec", dont_inherit=True)
                exec(code, namespace)
            printed = out.getvalue()
        elif block.language == "output":
            assert agrees(block.text, printed), f"{path}:{block.line}: the block before prints\n{printed}"
