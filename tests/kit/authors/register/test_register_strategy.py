"""The kit on a commit strategy over a service, written from the documentation alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from authors.register.register_strategy import RegisterStrategy
from icefield.abc import CommitStrategy, FileSystem
from icefield.builtin.local import LocalFileSystem
from icefield.testing import CommitStrategySuite, LossyProxy


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """The port of a service that runs in a process of its own."""
    command = [sys.executable, str(Path(__file__).with_name("register_service.py"))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())
        process.terminate()


class TestRegisterStrategy(CommitStrategySuite):
    @pytest.fixture(autouse=True)
    def known_port(self, port: int) -> None:
        self.port = port

    @pytest.fixture
    def service(self, port: int) -> Iterator[LossyProxy]:
        with LossyProxy(port) as proxy:
            yield proxy

    @pytest.fixture
    def file_system(self) -> FileSystem:
        return LocalFileSystem()

    @pytest.fixture
    def location(self, tmp_path: Path) -> str:
        return (tmp_path / "t").as_uri()

    def strategy(self, file_system: FileSystem, location: str, port: int | None = None) -> CommitStrategy:
        return RegisterStrategy(("db", location), location, file_system, {"register.port": str(port or self.port)})

    def strategy_through(self, service: LossyProxy, file_system: FileSystem, location: str) -> CommitStrategy:
        return self.strategy(file_system, location, service.port)
