"""Results of the REST Compatibility Kit for the REST server, and the page of the documentation that shows them.

The page is written anew by ``docs/make_rest_compatibility.py``, from a run.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from repository import ROOT
from rest_kit import ICEBERG, KitResult, run_kit
from servers.process import answers, free_port, running

PAGE: Final = ROOT / "docs/guide/rest-compatibility.md"

GAPS: Final = {
    "RESTCompatibilityKitCatalogTests.testLoadTableWithMissingMetadataFile(Path)": (
        "metadata is kept in memory by its location, which never names another file: the table is loaded although "
        "the test has deleted the file"
    ),
}
"""Why tests of the kit fail."""

_OF_KIT: Final = "RESTCompatibilityKitCatalogTests."
_EMPTY: Final = "the kit holds no REST catalog to have an empty namespace: the protocol cannot name it in a path"
_NESTED: Final = "the kit asks no REST catalog for nested namespaces; Icefield's own tests do"
_DOTS: Final = (
    "the kit asks this only where names may hold dots: the catalog `sql` refuses them, since the JDBC catalog's "
    "tables join the levels of a namespace by dots"
)
_SLASHES: Final = "the kit asks no REST catalog for names with slashes"
LEFT: Final = {
    f"{_OF_KIT}createAndDropEmptyNamespace()": _EMPTY,
    f"{_OF_KIT}listNamespacesWithEmptyNamespace()": _EMPTY,
    f"{_OF_KIT}listTablesInEmptyNamespace()": _EMPTY,
    f"{_OF_KIT}namespacePropertiesOnEmptyNamespace()": _EMPTY,
    "RESTCompatibilityKitViewCatalogTests.listViewsInEmptyNamespace()": _EMPTY,
    f"{_OF_KIT}testDropNamespaceWithNestedNamespace()": _NESTED,
    f"{_OF_KIT}testListNestedNamespaces()": _NESTED,
    f"{_OF_KIT}testNamespaceWithDot()": _DOTS,
    f"{_OF_KIT}testTableNameWithDot()": _DOTS,
    f"{_OF_KIT}testNamespaceWithSlash()": _SLASHES,
    f"{_OF_KIT}testTableNameWithSlash()": _SLASHES,
    f"{_OF_KIT}createTableInUniqueLocation()": "the kit has switched it off: its server cannot be configured for it",
}
"""Why the kit leaves tests out."""

_SERVE: Final = """
import sys, uvicorn
from icefield import load_catalog
from icefield_rest_server import app
folder = sys.argv[1]
catalog = load_catalog("kit", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse")
uvicorn.run(app(catalog), port=int(sys.argv[2]), log_level="warning")
"""
_HEAD: Final = f"""# Compatibility of the REST server

What the tests of Iceberg's REST Compatibility Kit {ICEBERG} find of [the server](rest-server.md) over the catalog `sql`
in SQLite. This page is written from a run, by `python docs/make_rest_compatibility.py`, and a test compares it with
another.

"""


def judged_by_kit(folder: Path) -> KitResult:
    """Run the kit against a server over a new catalog in a folder."""
    port = free_port()
    command = [sys.executable, "-c", _SERVE, str(folder), str(port)]
    uri = f"http://127.0.0.1:{port}"
    with running(command, lambda: answers(f"{uri}/v1/config"), seconds=120):
        return run_kit(uri, folder / "reports")


def page(result: KitResult) -> str:
    """The page of a run. Raises ``KeyError`` for a failed or skipped test without a reason in this module."""
    said = dict.fromkeys(result.passed, "passes")
    said |= {name: f"is left out: {LEFT[name]}" for name in result.skipped}
    said |= {name: f"fails: {GAPS[name]}" for name in result.failed}
    counts = [len(said), len(result.passed), len(result.skipped), len(result.failed)]
    parts = [_HEAD, "| tests | pass | are left out by the kit | fail |\n|---|---|---|---|\n"]
    parts.append("|" + "|".join(f" {count} " for count in counts) + "|\n")
    for kind in sorted({name.partition(".")[0] for name in said}):
        parts.append(f"\n## {kind}\n\n| test | |\n|---|---|\n")
        own = {name.partition(".")[2]: outcome for name, outcome in said.items() if name.startswith(f"{kind}.")}
        parts += [f"| `{name.removesuffix('()')}` | {outcome} |\n" for name, outcome in sorted(own.items())]
    return "".join(parts)
