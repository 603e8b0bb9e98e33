"""Checks of wrapped keys: they unwrap to themselves, and damaged or foreign ones to nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from icefield.abc import KeyService

from icefield_testing.key_services.base import LENGTHS, KeyServiceChecks, new_key, refuses


class KeyWrapChecks(KeyServiceChecks):
    """Checks of ``wrap``, ``unwrap`` and ``generate`` while the service works."""

    @pytest.mark.parametrize("length", LENGTHS)
    def test_a_wrapped_key_unwraps_to_itself(self, key_service: KeyService, key_id: str, length: int) -> None:
        """If this fails, the service pads, cuts or encodes a key, or returns another type than ``bytes``."""
        for key in (new_key(length), bytes(length), b"\xff" * length):
            wrapped = key_service.wrap(key, key_id)
            assert type(wrapped) is bytes, f"wrap returns {type(wrapped).__name__}, not bytes"
            found = key_service.unwrap(wrapped, key_id)
            assert type(found) is bytes, f"unwrap returns {type(found).__name__}, not bytes"
            assert found == key, f"a key of {length} bytes unwraps to another one of {len(found)} bytes"

    def test_a_wrapped_key_does_not_show_the_key(self, key_service: KeyService, key_id: str) -> None:
        """If this fails, the service encodes the key instead of encrypting it, or uses one nonce for several keys: then
        the difference of two wrapped keys is the difference of the keys. Draw a nonce by chance for each key."""
        first, second = new_key(), new_key()
        wrapped, other = key_service.wrap(first, key_id), key_service.wrap(second, key_id)
        for form in (first, first[::-1], first.hex().encode()):
            assert form not in wrapped, "the key is a part of the wrapped key"
        assert _xor(first, second) not in _xor(wrapped, other), "one nonce serves for two keys"
        if not self.wraps_alike:
            again = key_service.wrap(first, key_id)
            assert again != wrapped, "two wraps of one key are equal: one nonce serves for both (or `wraps_alike`)"

    def test_damaged_wrapped_keys_are_refused(self, key_service: KeyService, key_id: str) -> None:
        """If this fails, the cipher does not authenticate, or an error of a damaged header has another meaning: use an
        AEAD cipher, and raise ``DecryptionFailed`` for all bytes that the master key did not wrap."""
        key = new_key()
        wrapped = key_service.wrap(key, key_id)
        for what, damaged in self._damages(wrapped):
            found = refuses(lambda given=damaged: key_service.unwrap(given, key_id), what)  # type: ignore[misc]
            # Encoded text has bits that mean nothing, as at the end of base64: the same key is no harm there.
            assert found is None or (found == key and wrapped.isascii()), f"{what} unwraps to a key"

    def test_keys_of_another_master_key_are_refused(
        self, key_service: KeyService, key_id: str, other_key_id: str
    ) -> None:
        """If this fails, the service ignores the id, or lets the wrapped key choose the master key: a table could then
        name any master key that its reader may use. Send the id with each request, or bind it as additional data."""
        key = new_key()
        wrapped = key_service.wrap(key, key_id)
        found = refuses(lambda: key_service.unwrap(wrapped, other_key_id), "a key of another master key")
        assert found is None, "a key unwraps by a master key that did not wrap it"
        assert key_service.unwrap(wrapped, key_id) == key

    @pytest.mark.parametrize("length", LENGTHS)
    def test_a_generated_key_unwraps_to_itself(self, key_service: KeyService, key_id: str, length: int) -> None:
        """If this fails, ``generate`` returns a key of another length, one key twice, or a wrapped form of another key.
        For a length that the service does not make, return None."""
        made = key_service.generate(key_id, length)
        if made is None:
            pytest.skip(f"the service makes no keys of {length} bytes")
        assert len(made.key) == length, f"a generated key has {len(made.key)} bytes, not {length}"
        assert key_service.unwrap(made.wrapped, key_id) == made.key, "a generated key unwraps to another key"
        again = key_service.generate(key_id, length)
        assert again is not None
        assert again.key != made.key, "two generated keys are equal"
        assert made.key not in made.wrapped, "the generated key is a part of its wrapped form"
        assert repr(made.key) not in f"{made!r} {made}", "the repr of a generated key shows the key"

    def test_keys_of_earlier_versions_unwrap(
        self, key_service: KeyService, key_id: str, rotate: Callable[[str], object] | None
    ) -> None:
        """If this fails, ``unwrap`` uses the present version alone, or ``master_key`` gives a version of before."""
        if rotate is None:
            pytest.skip("master keys have no versions (`rotate`)")
        wrapped, versions = [], []
        for _ in range(3):
            key = new_key()
            wrapped.append((key, key_service.wrap(key, key_id)))
            versions.append(key_service.master_key(key_id).version)
            rotate(key_id)
        for number, (key, given) in enumerate(wrapped):
            found = refuses(lambda given=given: key_service.unwrap(given, key_id), "a key of an earlier version")  # type: ignore[misc]
            assert found is not None, f"a key does not unwrap after {3 - number} rotations"
            assert found == key, f"a key unwraps to another one after {3 - number} rotations"
        if versions[0] is not None:
            assert len({*versions, key_service.master_key(key_id).version}) == 4, "a rotation changes no version"

    def _damages(self, wrapped: bytes) -> Iterator[tuple[str, bytes]]:
        size = 8 * len(wrapped)
        step = max(1, -(-size // self.damages) | 1)  # odd, so that all bits of a byte get their turn
        for bit in range(0, size, step):
            flipped = bytearray(wrapped)
            flipped[bit // 8] ^= 1 << bit % 8
            yield f"a wrapped key with its bit {bit} flipped", bytes(flipped)
        yield "no byte", b""
        for length in sorted({1, len(wrapped) // 2, len(wrapped) - 1}):
            yield f"the first {length} bytes of a wrapped key", wrapped[:length]
        yield "a wrapped key with a byte more", wrapped + b"\x00"
        yield "a wrapped key twice", wrapped + wrapped
        yield "bytes by chance", new_key(len(wrapped))


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=False))
