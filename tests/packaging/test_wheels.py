"""Wheels build, install alone, and list their entry points. Run with ``make packaging``."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DISTRIBUTIONS = [ROOT, *sorted((ROOT / "plugins").iterdir()), ROOT / "examples" / "plugin-template"]
pytestmark = pytest.mark.packaging


def run(*command: str | Path, cwd: Path | None = None) -> str:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, cwd=cwd, check=False)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def install(python: Path, *packages: str | Path, wheels: Path | None = None) -> None:
    """Install with uv; Icefield's own distributions come from the wheels that were built."""
    found = ["--find-links", wheels] if wheels else []
    run(sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", python, *found, *packages)


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("wheels")
    for folder in DISTRIBUTIONS:
        run(sys.executable, "-m", "uv", "build", "--quiet", "--wheel", "--out-dir", target, folder)
    return target


def python_of(folder: Path) -> Path:
    venv.create(folder, with_pip=False)
    return folder / "bin" / "python"


def name_of(folder: Path) -> str:
    return str(tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]["name"])


def wheel_of(name: str, wheels: Path) -> Path:
    (found,) = wheels.glob(f"{name.replace('-', '_')}-*.whl")
    return found


def test_every_distribution_builds_a_typed_wheel_with_its_licence(wheels: Path) -> None:
    for folder in DISTRIBUTIONS:
        names = zipfile.ZipFile(wheel_of(name_of(folder), wheels)).namelist()
        assert any(name.endswith("py.typed") for name in names), folder
        assert not any(re.match(r"(test_\w*|\w*_test|conftest)\.py$", name.split("/")[-1]) for name in names)
        assert not any("__pycache__" in name for name in names)


def test_the_kernel_installs_alone_and_pulls_nothing_heavy(wheels: Path, tmp_path: Path) -> None:
    python = python_of(tmp_path / "env")
    install(python, wheel_of("icefield", wheels))
    listed = run(sys.executable, "-m", "uv", "pip", "list", "--python", python, "--format", "freeze").split()
    installed = {line.partition("==")[0] for line in listed}
    assert installed == {"icefield", "pluggy", "fsspec", "pyarrow", "numpy", "mmh3", "msgspec"}
    said = run(python, "-c", "from icefield import Plugins; print([i.name for i in Plugins.installed().listing()])")
    assert said.strip() == "['builtin']"
    refused = run(
        python,
        "-c",
        "from icefield import Plugins, IcefieldError\n"
        "try: Plugins.installed().file_format('parquet')\n"
        "except IcefieldError as error: print(error)",
    )
    assert refused.strip() == "no file format for 'parquet'; pip install \"icefield[parquet]\""


MAINTAIN = """
import sys, icefield
catalog = icefield.load_catalog("x", type="directory", warehouse=f"file://{sys.argv[1]}/{sys.argv[2]}")
catalog.create_namespace("a")
table = catalog.create_table("a.t", icefield.Schema())
try: print(table.maintenance.expire_snapshots().dry_run)
except icefield.IcefieldError as error: print(error)
"""


def test_maintenance_is_missed_with_advice_by_the_kernel_alone_and_found_beside_it(
    wheels: Path, tmp_path: Path
) -> None:
    python = python_of(tmp_path / "env")
    install(python, wheel_of("icefield", wheels))
    refused = run(python, "-c", MAINTAIN, tmp_path, "alone")
    assert refused.strip() == "no service of tables for 'maintenance'; pip install \"icefield[maintenance]\""
    install(python, wheel_of("icefield-maintenance", wheels), wheels=wheels)
    assert run(python, "-c", MAINTAIN, tmp_path, "beside").strip() == "False"


def test_a_type_checker_sees_maintenance_through_the_wheels(wheels: Path, tmp_path: Path) -> None:
    python = python_of(tmp_path / "env")
    install(python, wheel_of("icefield", wheels), wheel_of("icefield-maintenance", wheels), wheels=wheels)
    script = tmp_path / "job.py"
    script.write_text(
        "from icefield import Table\n"
        "def job(table: Table) -> str:\n"
        "    return table.maintenance.expire_snapshots().undeleted\n"
        "def slip(table: Table) -> None:\n"
        "    table.maintenence\n"
    )
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--python-executable", python, script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert 'job.py:3: error: Incompatible return value type (got "int", expected "str")' in checked.stdout
    assert 'job.py:5: error: "Table" has no attribute "maintenence"; maybe "maintenance"?' in checked.stdout
    assert "Found 2 errors in 1 file" in checked.stdout


@pytest.mark.parametrize("folder", DISTRIBUTIONS[1:], ids=lambda folder: folder.name)
def test_each_plugin_installs_alone_and_lists_its_entry_points(folder: Path, wheels: Path, tmp_path: Path) -> None:
    python = python_of(tmp_path / "env")
    install(python, wheel_of(name_of(folder), wheels), wheels=wheels)
    declared = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"].get("entry-points", {})
    code = (
        "from icefield import Plugins\nfor i in Plugins.installed().listing(): print(i.name, i.distribution, i.error)"
    )
    said = run(python, "-c", code).splitlines()
    for point in declared.get("icefield", {}):
        assert f"{point} {name_of(folder)} None" in said
    assert all(line.endswith(" None") for line in said)


def test_the_extras_bring_what_a_table_needs(wheels: Path, tmp_path: Path) -> None:
    python = python_of(tmp_path / "env")
    install(python, f"icefield[parquet,sql,cli] @ {wheel_of('icefield', wheels).as_uri()}", wheels=wheels)
    code = f"""
import icefield, pyarrow as pa
catalog = icefield.load_catalog("x", type="sql", uri="sqlite:///{tmp_path}/c.db", warehouse="file://{tmp_path}/wh")
catalog.create_namespace("a")
table = catalog.create_table("a.t", pa.schema([("n", pa.int64())]))
table.append(pa.table({{"n": [1, 2, 3]}}))
print(table.scan(row_filter="n > 1").to_arrow().num_rows)
"""
    assert run(python, "-c", code).strip() == "2"
    options = ["-p", "type=sql", "-p", f"uri=sqlite:///{tmp_path}/c.db", "-p", f"warehouse=file://{tmp_path}/wh"]
    said = run(python.parent / "icefield", "tables", "a", "--catalog", "x", "--output", "json", *options)
    assert said.strip() == '{"table": "a.t"}'


def test_the_template_passes_its_kit_with_nothing_but_what_its_author_installs(wheels: Path, tmp_path: Path) -> None:
    python = python_of(tmp_path / "env")
    kernel = f"icefield[avro,testing] @ {wheel_of('icefield', wheels).as_uri()}"
    install(python, kernel, wheel_of("icefield-arrow-ipc", wheels), wheels=wheels)
    shutil.copytree(ROOT / "examples" / "plugin-template" / "tests", tmp_path / "tests")
    said = run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests", cwd=tmp_path)
    assert re.search(r"^\d{3,} passed", said, re.MULTILINE), said[-2_000:]


def test_plugins_of_other_authors_pass_their_suites_on_installed_wheels(wheels: Path, tmp_path: Path) -> None:
    python = python_of(tmp_path / "env")
    kernel = wheel_of("icefield", wheels).as_uri()
    extras = "cli,frames,maintenance,parquet,report,rest-server,testing"
    install(python, f"icefield[{extras}] @ {kernel}", "httpx", "obstore", wheels=wheels)
    shutil.copytree(ROOT / "tests" / "kit" / "authors", tmp_path / "authors")
    shutil.copy(ROOT / "tests" / "support" / "planted_plugins.py", tmp_path)
    options = ("-p", "no:cacheprovider", "--import-mode=importlib", "-o", "pythonpath=.")
    said = run(python, "-m", "pytest", "-q", *options, "authors", cwd=tmp_path)
    assert re.search(r"^\d{3,} passed", said, re.MULTILINE), said[-2_000:]


def test_plain_pip_installs_the_checkout(tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=True)
    pip = [tmp_path / "env" / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    plugins = ROOT / "plugins"
    run(*pip, "-e", f"{ROOT}[parquet]", "-e", plugins / "icefield-parquet", "-e", plugins / "icefield-avro")
    code = "from icefield import Plugins; print(Plugins.installed().names('file-formats'))"
    assert run(tmp_path / "env" / "bin" / "python", "-c", code).strip() == "['avro', 'parquet']"
