"""The template of plugins: each kind is rendered, passes its own tests, and loads on the kernels that it states."""

from __future__ import annotations

import filecmp
import re
import subprocess
import sys
from pathlib import Path

import pytest
from copier.errors import CopierAnswersInterrupt
from icefield import Plugins
from icefield.errors import BrokenPlugin
from plugin_templates import KINDS as TEMPLATES
from plugin_templates import TEMPLATE, install, render, run_pytest
from repository import ROOT

PROVIDED = {
    "file-format": "file-formats",
    "file-system": "file-systems",
    "commit-strategy": "commit-strategies",
    "catalog": "catalogs",
    "key-service": "key-services",
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", TEMPLATES)
def test_a_rendered_plugin_passes_its_tests(kind: str, tmp_path: Path) -> None:
    project = render(tmp_path / "plugin", kind, "acme")
    run = run_pytest(project, install(project, tmp_path / "site"))
    assert run.returncode == 0, run.stdout[-5_000:] + run.stderr[-1_000:]
    assert re.search(r"^\d+ passed", run.stdout, re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize("kind", TEMPLATES)
def test_a_rendered_plugin_is_clean(kind: str, tmp_path: Path) -> None:
    project = render(tmp_path / "plugin", kind, "two-words")
    for command in (["check", "--select", "E,F,I,B,UP", "--line-length", "120"], ["format", "--line-length", "120"]):
        arguments = [
            sys.executable,
            "-m",
            "ruff",
            *command,
            "--isolated",
            *(["--check"] if "format" in command else []),
        ]
        run = subprocess.run([*arguments, "."], cwd=project, capture_output=True, encoding="utf-8", check=False)
        assert run.returncode == 0, run.stdout
    typed = [sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports", "-p", "icefield_two_words"]
    run = subprocess.run(typed, cwd=project / "src", capture_output=True, encoding="utf-8", check=False)
    assert run.returncode == 0, run.stdout


@pytest.mark.parametrize("kind", PROVIDED)
def test_a_rendered_plugin_loads_on_the_kernels_that_it_states_and_on_no_other(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = f"icefield_ranged_{kind.replace('-', '_')}"
    monkeypatch.syspath_prepend(str(render(tmp_path, kind, f"ranged-{kind}") / "src"))
    plugins = Plugins([f"{package}.hooks"])
    (provider,) = plugins.providers(PROVIDED[kind])
    contract = next(each.contract for each in Plugins.kinds() if each.name == PROVIDED[kind])
    assert provider.contract is not None
    assert contract is not None
    low, high = provider.contract
    assert high == contract.contract, "the template states an old version of the contract"
    for number in (low, high):
        monkeypatch.setattr(contract, "contract", number)
        assert issubclass(_loaded(package, kind), contract)
    monkeypatch.setattr(contract, "contract", low - 1)
    with pytest.raises(BrokenPlugin, match="icefield is older than the plugin; upgrade it"):
        _loaded(package, kind)
    monkeypatch.setattr(contract, "contract", high + 1)
    with pytest.raises(BrokenPlugin, match="the plugin is older than icefield; upgrade it"):
        _loaded(package, kind)


def _loaded(package: str, kind: str) -> type:
    """The class that the plugin provides, loaded anew."""
    plugins = Plugins([f"{package}.hooks"])
    load = {
        "file-format": plugins.file_format,
        "file-system": plugins.file_system,
        "commit-strategy": plugins.commit_strategy,
        "catalog": plugins.catalog,
        "key-service": plugins.key_service,
    }[kind]
    found = load(f"ranged-{kind}")
    return found if isinstance(found, type) else type(found)


def test_the_example_is_what_the_template_renders(tmp_path: Path) -> None:
    rendered = render(tmp_path / "plugin", "file-format", "arrow-ipc")
    example = ROOT / "examples" / "plugin-template"
    names = sorted(str(path.relative_to(rendered)) for path in rendered.rglob("*") if path.is_file())
    assert len(names) > 8
    same, _, _ = filecmp.cmpfiles(rendered, example, names, shallow=False)
    assert sorted(same) == names, "render it anew: copier copy templates/plugin examples/plugin-template"


@pytest.mark.parametrize("name", ["Acme", "acme_store", "-acme", "acme store", ""])
def test_a_name_that_pip_would_spell_otherwise_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises((ValueError, CopierAnswersInterrupt), match="lower-case letters, digits and hyphens"):
        render(tmp_path, "listener", name)
    assert list(tmp_path.iterdir()) == []


def test_each_kind_of_the_question_has_its_folder() -> None:
    asked = re.search(r"choices: \[(.*)\]", (TEMPLATE / "copier.yml").read_text("utf-8"))
    assert asked is not None
    assert tuple(asked.group(1).split(", ")) == TEMPLATES
    assert {path.name for path in (TEMPLATE / "kinds").iterdir()} == set(TEMPLATES)
