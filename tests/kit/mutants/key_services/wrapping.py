"""Key services that wrap wrongly, or that take one id for another."""

from __future__ import annotations

import hashlib
import os
from typing import Any
from urllib.parse import unquote

from icefield.abc import GeneratedKey, MasterKey
from icefield.errors import AccessDenied, DecryptionFailed, IcefieldError, InvalidArgument, KeyUnavailable

from mutants import Mutant, of
from mutants.key_services.right import RightKeyService


class PadsKeys(RightKeyService):
    """Pads short keys to 32 bytes, and never removes the padding."""

    def wrap(self, key: bytes, key_id: str) -> bytes:
        return super().wrap(key.ljust(32, b"\0"), key_id)


class ReturnsArrays(RightKeyService):
    """Returns a bytearray."""

    def unwrap(self, wrapped: bytes, key_id: str) -> bytes:
        return bytearray(super().unwrap(wrapped, key_id))  # type: ignore[return-value]


class EncodesKeys(RightKeyService):
    """Writes the key in hexadecimal digits, and calls that wrapped."""

    def wrap(self, key: bytes, key_id: str) -> bytes:
        return super().wrap(key, key_id) + b"|" + key.hex().encode()

    def unwrap(self, wrapped: bytes, key_id: str) -> bytes:
        return super().unwrap(wrapped.partition(b"|")[0], key_id)


class SharesANonce(RightKeyService):
    """A stream cipher whose stream depends on the master key alone."""

    def wrap(self, key: bytes, key_id: str) -> bytes:
        self.master_key(key_id)
        stream = hashlib.sha256(key_id.encode()).digest()
        return bytes(a ^ b for a, b in zip(key, stream, strict=False))

    def unwrap(self, wrapped: bytes, key_id: str) -> bytes:
        return self.wrap(wrapped, key_id)


class AnswersDamage(RightKeyService):
    """Returns some key for bytes that it did not wrap."""

    def unwrap(self, wrapped: bytes, key_id: str) -> bytes:
        try:
            return super().unwrap(wrapped, key_id)
        except DecryptionFailed:
            return os.urandom(32)


class CallsDamageAnArgument(RightKeyService):
    """Takes damage for a mistake of the caller."""

    def refusal(self, status: int, key_id: str, said: str) -> IcefieldError:
        return (
            InvalidArgument(said)
            if status == 400 and "not found" not in said
            else super().refusal(status, key_id, said)
        )


class IgnoresTheId(RightKeyService):
    """The wrapped key, and not the caller, chooses the master key."""

    def unwrap(self, wrapped: bytes, key_id: str) -> bytes:
        for each in (key_id, "orders", "others"):
            try:
                return super().unwrap(wrapped, each)
            except DecryptionFailed:
                continue
        raise DecryptionFailed("no master key opens it")


class GeneratesOneLength(RightKeyService):
    """Makes 32 bytes whatever the caller asks for."""

    def generate(self, key_id: str, length: int) -> GeneratedKey | None:
        return super().generate(key_id, 32)


class GeneratesAnotherKey(RightKeyService):
    """Returns another key than it wrapped."""

    def generate(self, key_id: str, length: int) -> GeneratedKey | None:
        made = super().generate(key_id, length)
        return None if made is None else GeneratedKey(os.urandom(length), made.wrapped)


class KnowsThePresentVersion(RightKeyService):
    """Opens no key of an earlier version."""

    def unwrap(self, wrapped: bytes, key_id: str) -> bytes:
        if not wrapped.startswith(b"vault:v%s:" % str(self.master_key(key_id).version).encode()):
            raise DecryptionFailed("another version wrapped it")
        return super().unwrap(wrapped, key_id)


class NamesTheFirstVersion(RightKeyService):
    """Never sees a rotation."""

    def master_key(self, key_id: str) -> MasterKey:
        super().master_key(key_id)
        return MasterKey(key_id, "1")


class MakesMistypedKeys(RightKeyService):
    """Lets the service make a master key that is not there."""

    def wrap(self, key: bytes, key_id: str) -> bytes:
        return self.encrypted(key, key_id)


class DeniesUnknownKeys(RightKeyService):
    """Says that an unknown key is forbidden."""

    def refusal(self, status: int, key_id: str, said: str) -> IcefieldError:
        found = super().refusal(status, key_id, said)
        return AccessDenied(str(found)) if isinstance(found, KeyUnavailable) else found


class MissesDeniedKeys(RightKeyService):
    """Says that a forbidden key is gone."""

    def refusal(self, status: int, key_id: str, said: str) -> IcefieldError:
        found = super().refusal(status, key_id, said)
        return KeyUnavailable(str(found), key_id=key_id) if isinstance(found, AccessDenied) else found


class TrimsIds(RightKeyService):
    """Removes blanks around an id."""

    def checked(self, key_id: str) -> str:
        return super().checked(key_id.strip())


class TakesTheLastPart(RightKeyService):
    """Decodes an id, and takes the part behind its last slash."""

    def checked(self, key_id: str) -> str:
        return super().checked(unquote(key_id).rpartition("/")[2])


class QuotesNothing(RightKeyService):
    """Puts an id into a path as it is."""

    def checked(self, key_id: str) -> str:
        return key_id


class FollowsIds(RightKeyService):
    """Takes an id that is a URL for the address of the service."""

    def ask(self, method: str, action: str, key_id: str, body: dict[str, Any] | None) -> dict[str, Any]:
        if key_id.startswith("http://"):
            address, _, name = key_id.removeprefix("http://").partition("/")
            other = RightKeyService({**self.properties, "port": address.rpartition(":")[2]})
            return other.ask(method, action, name, body)
        return super().ask(method, action, key_id, body)


_ITSELF = "test_a_wrapped_key_unwraps_to_itself"
_SHOWS = "test_a_wrapped_key_does_not_show_the_key"
_DAMAGED = "test_damaged_wrapped_keys_are_refused"
_GENERATED = "test_a_generated_key_unwraps_to_itself"
_VERSIONS = "test_keys_of_earlier_versions_unwrap"
_UNKNOWN = "test_an_unknown_master_key_is_unavailable"
_RESEMBLES = "test_an_id_that_only_resembles_one_is_refused"
_LEADS = "test_no_id_leads_to_another_host_or_path"

MUTANTS: list[Mutant] = of(
    {
        PadsKeys: (_ITSELF, "a key of 16 bytes unwraps to another one of 32 bytes"),
        ReturnsArrays: (_ITSELF, "unwrap returns bytearray, not bytes"),
        EncodesKeys: (_SHOWS, "the key is a part of the wrapped key"),
        SharesANonce: (_SHOWS, "one nonce serves for two keys"),
        AnswersDamage: (_DAMAGED, "unwraps to a key"),
        CallsDamageAnArgument: (_DAMAGED, "raises InvalidArgument, not DecryptionFailed"),
        IgnoresTheId: ("test_keys_of_another_master_key_are_refused", "a master key that did not wrap it"),
        GeneratesOneLength: (_GENERATED, "a generated key has 32 bytes, not 16"),
        GeneratesAnotherKey: (_GENERATED, "a generated key unwraps to another key"),
        KnowsThePresentVersion: (_VERSIONS, "a key does not unwrap after 3 rotations"),
        NamesTheFirstVersion: (_VERSIONS, "a rotation changes no version"),
        MakesMistypedKeys: (_UNKNOWN, "wrap answers for an unknown master key"),
        DeniesUnknownKeys: (_UNKNOWN, "raises AccessDenied, not KeyUnavailable"),
        MissesDeniedKeys: ("test_a_denied_master_key_is_an_error_of_access", "raises KeyUnavailable"),
        TrimsIds: (_RESEMBLES, "takes the id 'orders\\n' for another"),
        TakesTheLastPart: (_RESEMBLES, "takes the id '/orders' for another"),
        QuotesNothing: (_LEADS, "requests /v1/"),
        FollowsIds: (_LEADS, "an id leads to another host"),
    }
)
