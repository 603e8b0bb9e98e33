"""``copier update`` brings a change of the template to a plugin that its author has changed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from copier import run_copy, run_update
from plugin_templates import TEMPLATE
from repository import ROOT

ANSWERS = ".copier-answers.yml"


def git(folder: Path, *arguments: str) -> None:
    author = ("-c", "user.name=An author", "-c", "user.email=author@example.com", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *author, *arguments], cwd=folder, check=True, capture_output=True)


def commit(folder: Path, tag: str | None = None) -> None:
    """Commit all files, and tag the commit."""
    if not (folder / ".git").exists():
        git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "A change")
    if tag is not None:
        git(folder, "tag", tag)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with the template of this one, as version 0.1.0."""
    folder = tmp_path / "icefield"
    shutil.copytree(TEMPLATE, folder / "templates" / "plugin")
    shutil.copy(ROOT / "copier.yml", folder)
    commit(folder, "v0.1.0")
    return folder


def answers(project: Path) -> dict[str, str]:
    read = yaml.safe_load((project / ANSWERS).read_text("utf-8"))
    assert isinstance(read, dict)
    return read


@pytest.mark.parametrize("kind", ["file-format", "command"])
def test_an_update_brings_changes_of_the_template_and_keeps_those_of_the_author(
    kind: str, repository: Path, tmp_path: Path
) -> None:
    project = tmp_path / "plugin"
    run_copy(str(repository), project, data={"kind": kind, "name": "two-words"}, defaults=True, quiet=True)
    assert answers(project) | {"_commit": "v0.1.0", "kind": kind, "name": "two-words"} == answers(project)
    hooks, makefile = project / "src" / "icefield_two_words" / "hooks.py", project / "Makefile"
    hooks.write_text(hooks.read_text("utf-8") + "\n# The author's line.\n", "utf-8")
    commit(project)

    for changed, line in (
        (repository / "templates/plugin/project/Makefile", "\nnew:\n\techo new\n"),
        (repository / f"templates/plugin/kinds/{kind}/readme.md.jinja", "A new line for {{ name }}.\n"),
    ):
        changed.write_text(changed.read_text("utf-8") + line, "utf-8")
    commit(repository, "v0.2.0")
    run_update(project, defaults=True, overwrite=True, quiet=True)

    assert "new:\n\techo new" in makefile.read_text("utf-8")
    assert "A new line for two-words.\n" in (project / "README.md").read_text("utf-8")
    assert hooks.read_text("utf-8").endswith("# The author's line.\n")
    assert answers(project) | {"_commit": "v0.2.0", "kind": kind, "name": "two-words"} == answers(project)
    assert not list(project.rglob("*.rej"))


def test_the_root_of_the_repository_renders_what_its_folder_renders(repository: Path, tmp_path: Path) -> None:
    rendered = []
    for source in (repository, TEMPLATE):
        project = tmp_path / f"from {source.name}"
        run_copy(str(source), project, data={"kind": "catalog", "name": "acme"}, defaults=True, quiet=True)
        files = {path.relative_to(project): path.read_bytes() for path in project.rglob("*") if path.is_file()}
        rendered.append(files)
    from_root, from_folder = rendered
    assert from_root.pop(Path(ANSWERS))
    assert from_root == from_folder
