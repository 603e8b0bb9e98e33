"""Hooks of mkdocs: pages of the site that are made of files outside of this folder, and of docstrings."""

from __future__ import annotations

import os.path
import re
from pathlib import Path, PurePosixPath
from typing import Any, Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).resolve().parent.parent
PAGES: Final = {
    "README.md": "index.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "RELEASING.md": "project/releasing.md",
    "LICENSE": "project/license.md",
    "examples/spark-submit/README.md": "project/spark-submit.md",
} | {
    str(path.relative_to(ROOT)): f"distributions/{path.parent.name}-{path.stem}.md".replace("-README", "")
    for path in sorted(ROOT.glob("plugins/*/*.md"))
}
"""The pages that are files outside of ``docs``, and their places in the site."""

_FENCE: Final = re.compile(r"^(```+[a-z]+) (\S+)$", re.MULTILINE)
_LINK: Final = re.compile(r"(\]\()([^)\s:#]+)((?:#[^)\s]*)?\))")
_NEXT_TO_THE_SITE: Final = {place: path for path, place in PAGES.items()}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the pages of modules, distributions and internals to the navigation."""
    sections: dict[str, list[Any]] = {name: pages for section in config.nav or [] for name, pages in section.items()}
    sections["Reference"] += [{"Python": [{name: _place(name)} for name in _modules()]}]
    sections["Reference"] += [{"Distributions": [place for place in PAGES.values() if place.startswith("dist")]}]
    sections["Project"] += [place for place in PAGES.values() if place.startswith("project")]
    for folder in ("internals", "decisions"):
        pages = sorted((ROOT / "docs" / folder).glob("*.md"), key=lambda page: (page.stem != "README", page.stem))
        sections["Project"] += [{folder.title(): [f"{folder}/{page.name}" for page in pages]}]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files outside of ``docs``, and a page for each public module."""
    for path, place in PAGES.items():
        text = (ROOT / path).read_text("utf-8")
        content = text if path.endswith(".md") else f"# License\n\n```text\n{text}```\n"
        files.append(File.generated(config, place, content=content))
    for name, public in _modules().items():
        documented = "\n\n".join(f"::: {name}.{each}" for each in public)
        files.append(File.generated(config, _place(name), content=f"# {name}\n\n{documented}\n"))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to the places of files in the site, and make a title of a fence's second word."""
    place = page.file.src_uri
    origin = PurePosixPath(_NEXT_TO_THE_SITE.get(place, f"docs/{place}")).parent

    def led(link: re.Match[str]) -> str:
        target = os.path.normpath(origin / link[2])
        to = PAGES.get(target) or target.removeprefix("docs/")
        if to == target:
            return link[0]
        return f"{link[1]}{os.path.relpath(to, PurePosixPath(place).parent)}{link[3]}"

    titled = _FENCE.sub(lambda fence: f'{fence[1]} title="{fence[2]}"' if "/" in fence[2] else fence[1], markdown)
    return _LINK.sub(led, titled)


def _modules() -> dict[str, list[str]]:
    """The public modules, and the public names of each."""
    found: dict[str, list[str]] = {}
    for line in (ROOT / "framework/public-api.txt").read_text("utf-8").splitlines():
        if line.startswith("# "):
            names = found.setdefault(line.split()[1], [])
        elif match := re.match(r"(?:class|def|value) (\w+)", line):
            names.append(match[1])
    return found


def _place(module: str) -> str:
    return f"reference/python/{module}.md"
