"""The REST server of this repository for engines that only know its address and a token."""

from __future__ import annotations

import re
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from icefield import Catalog, load_catalog
from icefield_rest_server import Settings, app
from rest_served import served
from servers.process import answers, free_port, running

TOKEN = "a-token-that-nobody-guesses"
_COUNT = re.compile(r'^icefield_rest_requests_total\{operation="(\w+)",status="2\d\d"\} (\d+)', re.MULTILINE)


@dataclass(frozen=True)
class Served:
    """A running server over SQLite, and the folder of its catalog."""

    uri: str
    token: str
    folder: Path

    def past(self) -> Catalog:
        """The catalog behind, opened without the server."""
        return _behind(self.folder)

    def done(self) -> Counter[str]:
        """How often each operation was asked for, and done."""
        request = urllib.request.Request(f"{self.uri}/metrics", headers={"Authorization": f"Bearer {self.token}"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            counts: Counter[str] = Counter()
            for operation, number in _COUNT.findall(answer.read().decode()):
                counts[operation] += int(number)
            return counts


def _behind(folder: Path) -> Catalog:
    return load_catalog(
        "lake", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse"
    )


@contextmanager
def served_by_command(folder: Path) -> Iterator[Served]:
    """`icefield serve` with a file of tokens, as a process of its own that ends with the block."""
    (folder / "tokens").write_text(f"engines {TOKEN}\n")
    settings = {
        "ICEFIELD_CATALOG__LAKE__TYPE": "sql",
        "ICEFIELD_CATALOG__LAKE__URI": f"sqlite:///{folder}/catalog.db",
        "ICEFIELD_CATALOG__LAKE__WAREHOUSE": f"file://{folder}/warehouse",
    }
    port = free_port()
    command = [sys.executable, "-m", "icefield_cli.main", "serve", "--catalog", "lake", "--port", str(port)]
    uri = f"http://127.0.0.1:{port}"
    with running(
        [*command, "--tokens", folder / "tokens"],
        lambda: answers(f"{uri}/v1/config"),
        environment=settings,
        seconds=120,
    ):
        yield Served(uri, TOKEN, folder)


@contextmanager
def served_here(folder: Path, settings: Settings | None = None) -> Iterator[Served]:
    """A server in a thread of this process, with settings that the command has no options for."""
    with _behind(folder) as catalog, served(app(catalog, settings)) as uri:
        yield Served(uri, TOKEN, folder)
