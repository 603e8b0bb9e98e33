"""The key services pass the kit: a local keystore, and those of AWS, Azure, Google and Vault on loopback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from icefield.abc import KeyService
from icefield_encryption.local_keystore import PATH, LocalKeystore, add_key
from icefield_testing import KeyServiceSuite


class TestLocalKeystore(KeyServiceSuite):
    damages = 1_000_000  # every bit

    @pytest.fixture
    def file(self, tmp_path: Path) -> Path:
        path = tmp_path / "keys.json"
        for name in ("orders", "others"):
            add_key(path, name)
        return path

    @pytest.fixture
    def key_service(self, file: Path) -> KeyService:
        return LocalKeystore({PATH: str(file)})

    @pytest.fixture
    def key_id(self) -> str:
        return "orders"

    @pytest.fixture
    def other_key_id(self) -> str:
        return "others"

    @pytest.fixture
    def rotate(self, file: Path) -> Callable[[str], object]:
        return lambda key_id: add_key(file, key_id)
