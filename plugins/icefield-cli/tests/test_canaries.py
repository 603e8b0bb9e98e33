"""Text that others wrote is shown by every command and page, and is never run."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import icefield
import pyarrow as pa
import pytest
from canaries import NAME, PRODUCT, Texts, check_page, hostile_table

READERS = [
    *("describe", "schema", "properties", "scan", "files", "partitions", "manifests", "snapshots", "history", "refs"),
    *("changes", "metadata", "doctor"),
]
CHANGES = ["compute-stats", "rewrite-data-files", "rewrite-deletes", "rewrite-manifests", "expire-snapshots"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0])
def test_no_command_runs_what_a_table_says(run: Any, catalog: icefield.Catalog, tmp_path: Path, seed: int) -> None:
    text = Texts(random.Random(seed))
    catalog.create_namespace((NAME,))
    odd = f"{NAME}.{NAME}"
    hostile_table(catalog, text, (NAME, NAME))
    hostile_table(catalog, text, "db.t")
    made = text.made
    if isinstance(catalog.backend, icefield.abc.ViewCatalog):
        for view in (("db", "v"), (NAME, "v")):
            catalog.create_view(view, pa.schema([(made[0], pa.string())]), {"spark": f"SELECT {made[1]} AS x"})
    printed = []

    def check(*arguments: str, status: int | None = 0) -> Any:
        ran = run(*arguments)
        assert ran.status == status or status is None, (arguments, ran.err)
        assert ran.status in (0, 1, 2)
        assert "Traceback" not in ran.err
        for line in f"{ran.out}\n{ran.err}".split("\n"):
            assert line.isprintable(), (arguments, line)
        printed.append(ran.out + ran.err)
        return ran

    for command in READERS:
        for table in ("db.t", odd):
            check(command, table)
            check(command, table, "--output", "json")
    shown = check("properties", "db.t", "--output", "json").objects
    assert set(made) & {value for each in shown for value in each.values()}
    for string in [each for each in made if not each.startswith("-")][:6]:  # others would be options
        check("scan", "db.t", "--where", string, status=None)
        check("scan", "db.t", "--columns", string, status=None)
        check("tag", "db.t", string, status=None)
        check("properties", "db.t", "--set", f"{string}={string}", status=None)
        check("describe", f"db.{string}", status=None)
        check("scan", "db.t", "--ref", string, status=None)
    for command in CHANGES:
        check(command, "db.t")
        check(command, odd)
    check("doctor", odd, "--repair", "--dry-run")
    check("doctor", odd, "--repair")
    check("create-table", f"{NAME}.made", "--column", "id long")
    if icefield.abc.CatalogAbility.RENAME in catalog.backend.abilities:
        check("rename-table", odd, f"{NAME}.more{NAME}")
        check("rename-table", f"{NAME}.more{NAME}", odd)
    check("remove-orphans", odd)
    for listing in (("tables",), ("tables", NAME), ("namespaces",), ("doctor", "--namespace", NAME), ("plugins",)):
        check(*listing)
        check(*listing, "--output", "json")
    for page in ("db.t", odd, None):
        check("report", *([page] if page else []), "-o", str(tmp_path / "page.html"))
        html = (tmp_path / "page.html").read_text("utf-8")
        check_page(html)
        printed.append(html)
    assert not [path for path in tmp_path.rglob("canary") if path.is_file()]
    for each in printed:
        assert PRODUCT not in each
        assert str(tmp_path / "home") not in each
    check("drop-namespace", NAME, status=1)
    check("drop-table", odd, "--purge", "--yes")
