"""The commands that serve the explorer, as processes."""

from __future__ import annotations

import sys
import urllib.request
from pathlib import Path
from urllib.error import HTTPError

import icefield
import pytest
from servers.process import answers, free_port, running

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("command", "protocol"), [(["ui"], 404), (["serve", "--ui"], 200), (["serve", "--ui", "--workers", "2"], 200)]
)
def test_a_command_serves_the_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str], protocol: int
) -> None:
    place = f'type = "sql"\nuri = "sqlite:///{tmp_path}/catalog.db"\nwarehouse = "file://{tmp_path}/warehouse"\n'
    (tmp_path / "icefield.toml").write_text(f"[catalog.lake]\n{place}")
    monkeypatch.chdir(tmp_path)
    icefield.load_catalog("lake").create_namespace("sales")
    port = free_port()
    run = [Path(sys.executable).with_name("icefield"), *command, "--catalog", "lake", "--port", str(port)]
    url = f"http://127.0.0.1:{port}"
    with running(run, lambda: answers(f"{url}/health/live")):
        with urllib.request.urlopen(f"{url}/ui/", timeout=30) as answer:
            assert "/ui/namespace/sales" in answer.read().decode()
        try:
            with urllib.request.urlopen(f"{url}/v1/namespaces", timeout=30) as answer:
                status = answer.status
        except HTTPError as error:
            status = error.code
        assert status == protocol
