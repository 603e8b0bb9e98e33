"""The key service ``local``."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest
from icefield.abc import MasterKey
from icefield.errors import AccessDenied, DecryptionFailed, InvalidArgument, KeyUnavailable
from icefield_encryption.local_keystore import PATH, LocalKeystore, add_key


def service(path: Path) -> LocalKeystore:
    return LocalKeystore({PATH: str(path)})


def test_a_key_is_unwrapped_by_the_version_that_wrapped_it(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    assert add_key(path, "a") == MasterKey("a", "1")
    keystore = service(path)
    first = keystore.wrap(b"k" * 16, "a")
    assert add_key(path, "a", 16) == MasterKey("a", "2")
    assert add_key(path, "b", 24) == MasterKey("b", "1")
    second = keystore.wrap(b"k" * 16, "a")
    assert first != second
    assert keystore.unwrap(first, "a") == keystore.unwrap(second, "a") == b"k" * 16
    assert keystore.master_key("a") == MasterKey("a", "2")
    for wrapped in (first[:-1], second[:5], b"", b"\xff", first[:10] + b"\0" + first[11:]):
        with pytest.raises(DecryptionFailed):
            keystore.unwrap(wrapped, "a")
    with pytest.raises(DecryptionFailed):
        keystore.unwrap(first, "b")


def test_a_keystore_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    add_key(path, "a")
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o640)
    with pytest.raises(AccessDenied, match="chmod 600"):
        service(path).wrap(b"k" * 16, "a")


def test_errors_name_the_remedy_and_no_key(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    with pytest.raises(InvalidArgument, match=PATH):
        LocalKeystore({}).wrap(b"k" * 16, "a")
    with pytest.raises(KeyUnavailable, match="there is no local keystore"):
        service(path).wrap(b"k" * 16, "a")
    add_key(path, "a")
    with pytest.raises(KeyUnavailable, match="no master key 'b'"):
        service(path).wrap(b"k" * 16, "b")
    held = json.loads(path.read_text())
    secret = held["keys"]["a"]["versions"]["1"]
    for damaged in ({}, [], {"keys": {"a": {"current": "2", "versions": {"1": secret}}}},
                    {"keys": {"a": {"current": "1", "versions": {"1": secret[:-2]}}}}):  # fmt: skip
        path.write_text(json.dumps(damaged))
        with pytest.raises(InvalidArgument, match="is damaged") as raised:
            service(path).wrap(b"k" * 16, "a")
        assert secret[:10] not in str(raised.value)
    with pytest.raises(InvalidArgument, match="16, 24 or 32"):
        add_key(tmp_path / "other", "a", 8)


def test_a_key_service_stays_in_its_process(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="stays in its process"):
        pickle.dumps(service(tmp_path))
    assert str(tmp_path) not in repr(service(tmp_path))
