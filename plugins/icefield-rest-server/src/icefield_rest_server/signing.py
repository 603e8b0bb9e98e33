"""Signing of S3 requests for clients: for the objects of one table, according to the client's rights."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final
from urllib.parse import quote, unquote_to_bytes
from xml.etree import ElementTree

import msgspec
from icefield.errors import InvalidArgument
from icefield.toolkit import decodable

from icefield_rest_server.answers import Answer, Refused
from icefield_rest_server.aws_signature import HASH, S3_SCHEMES, S3Keys, signed_headers
from icefield_rest_server.calls import Call, typed
from icefield_rest_server.places import is_plain
from icefield_rest_server.settings import RequestSigner
from icefield_rest_server.state import State

SIGN: Final = "remote-signing"
_ADDRESS: Final = re.compile(r"(https?)://([A-Za-z0-9.-]{1,253}(?::[0-9]{1,5})?)(/[!$&-;=@A-Z_a-z~%]*)(?:\?([!$-~]*))?")
_ESCAPED: Final = re.compile(r"(?:[^%]|%[0-9A-Fa-f]{2})*")
_HEADER: Final = re.compile(r"[a-z0-9-]{1,200}")
_VALUE: Final = re.compile(r"[\x20-\x7e]{0,4096}")
_PROLOG: Final = b'<?xml version="1.0" encoding="UTF-8"?>'
_MOST_BODY: Final = 1024 * 1024
_MOST_KEYS: Final = 1000
_UNSIGNED: Final = "UNSIGNED-PAYLOAD"
_HASH_FORM: Final = re.compile(rf"[0-9a-f]{{64}}|{_UNSIGNED}|STREAMING-[A-Z0-9-]{{1,60}}")
_SOURCE: Final = "x-amz-copy-source"
# Headers that do not grant access to an object. The value of ``x-amz-copy-source`` is checked separately.
_HARMLESS: Final = re.compile(
    r"(?!x-amz-).*|x-amz-(content-sha256|date|user-agent|trailer|decoded-content-length|storage-class|"
    r"sdk-checksum-algorithm|checksum-[a-z0-9-]+|metadata-directive|copy-source(-range|-if-[a-z-]+)?|"
    r"server-side-encryption(-aws-kms-key-id|-context|-bucket-key-enabled)?)"
)
_NOT_SIGNED: Final = frozenset({"authorization", "host", "x-amz-security-token", "x-amz-date"})
# Query parameters by method: GET and HEAD may have any parameters of one set, the others must have exactly one set.
_OBJECT: Final[dict[str, tuple[frozenset[str], ...]]] = {
    "GET": (frozenset({"partNumber"}), frozenset({"uploadId", "max-parts", "part-number-marker"})),
    "HEAD": (frozenset({"partNumber"}),),
    "PUT": (frozenset(), frozenset({"partNumber", "uploadId"})),
    "POST": (frozenset({"uploads"}), frozenset({"uploadId"})),
    "DELETE": (frozenset(), frozenset({"uploadId"})),
}
_LISTING: Final = frozenset(
    {
        "list-type",
        "prefix",
        "delimiter",
        "continuation-token",
        "start-after",
        "max-keys",
        "encoding-type",
        "fetch-owner",
        "marker",
    }
)
_SAYS_NOTHING: Final = "x-id"  # newer SDKs name the operation by it


@dataclass(frozen=True, slots=True)
class S3Signer:
    """Signs with keys of the server's own, which ``keys`` gives for each request, at one store.

    ``endpoint`` is its address, AWS' where there is none.
    """

    keys: Callable[[], S3Keys] = field(repr=False)
    region: str
    endpoint: str | None = None

    def hosts(self) -> tuple[str, tuple[str, ...]]:
        """The scheme and the authorities of the store, for addresses with the bucket in the path."""
        if self.endpoint is not None:
            found = _ADDRESS.fullmatch(self.endpoint.rstrip("/") + "/")
            if found is None or found[3] != "/" or found[4] is not None:
                raise InvalidArgument(f"the endpoint of S3 is a scheme and a host: {self.endpoint[:200]}")
            return found[1], (_authority(found[1], found[2]),)
        named = [f"s3.{self.region}.amazonaws.com", f"s3.dualstack.{self.region}.amazonaws.com"]
        return "https", (*named, *(["s3.amazonaws.com"] if self.region == "us-east-1" else []))

    def properties(self, path: str) -> dict[str, str]:
        """Return the properties for clients, with the signing endpoint at a path below the catalog's address."""
        found = {"s3.remote-signing-enabled": "true", "s3.signer.endpoint": path, "client.region": self.region}
        if self.endpoint is not None:
            found |= {"s3.endpoint": self.endpoint, "s3.path-style-access": "true"}
        return {**found, "s3.region": self.region}


@decodable
class _Asked(msgspec.Struct):
    region: str
    uri: str
    method: str
    headers: dict[str, list[str]]
    properties: dict[str, str] = {}
    body: str | None = None
    provider: str = "s3"


@dataclass(frozen=True, slots=True)
class _Address:
    """An address of the store, without escapes: the key is empty for the bucket itself."""

    authority: str
    path: str
    key: str
    query: list[tuple[str, str]]


def sign_request(state: State, call: Call) -> Answer:
    """Sign a request for objects below the table's location. Answers with its headers."""
    signer = state.settings.signer
    if signer is None:
        raise Refused(404, "NotFoundException", "this server signs no requests")
    asked: _Asked = typed(call.document(), _Asked, "the request")
    name = call.name("table")
    location = state.loaded(name).metadata.location
    if not state.may_open(name, location):
        raise _forbidden("the table is not in a place of its own")
    if asked.provider not in S3_SCHEMES or asked.region != signer.region:
        raise InvalidArgument(f"requests are signed for S3 in {signer.region}")
    if asked.method not in _OBJECT:
        raise InvalidArgument(f"a request to S3 is one of {', '.join(_OBJECT)}, not '{asked.method[:20]}'")
    writes = asked.method not in ("GET", "HEAD")
    if writes and not state.allows(call.principal, "updateTable", name):
        raise _forbidden("you may read this table, and not write to it")
    bucket, prefix = _place(location)
    address = _address(signer, asked.uri, bucket)
    body = _check(asked, address, prefix)
    headers = _headers(asked.headers, body, bucket, prefix)
    made = signed_headers(
        asked.method, address.authority, address.path, address.query, headers, signer.keys(), signer.region
    )
    answer = {"uri": asked.uri, "headers": {key: [value] for key, value in made.items()}}
    return Answer(body=answer, headers={"Cache-Control": "no-store"})


def signing_properties(state: State, call: Call, name: tuple[str, ...], location: str) -> dict[str, str]:
    """Return the signing properties for a client that asked for signing; empty where the server cannot sign."""
    signer = state.settings.signer
    if signer is None or SIGN not in call.headers.get("x-iceberg-access-delegation", ""):
        return {}
    if not state.signs(name, location):
        return {}
    namespace = quote("\x1f".join(name[:-1]), safe="")
    return signer.properties(f"v1/namespaces/{namespace}/tables/{quote(name[-1], safe='')}/sign")


def _place(location: str) -> tuple[str, str]:
    """Return the bucket of a table's location, and the prefix of its keys."""
    scheme, _, rest = location.partition("://")
    bucket, _, folder = rest.strip("/").partition("/")
    if scheme not in S3_SCHEMES or not re.fullmatch(r"[a-z0-9.-]{3,63}", bucket) or not is_plain(folder):
        raise _forbidden("the table's location is no folder of a bucket of S3")
    return bucket, f"{folder}/"


def _address(signer: RequestSigner, uri: str, bucket: str) -> _Address:
    """Parse the address of a request, in its only accepted form. Raises ``Refused`` for any other."""
    found = _ADDRESS.fullmatch(uri) if len(uri) <= 8192 else None
    if found is None:
        raise InvalidArgument("the address of the request is none of S3")
    scheme, hosts = signer.hosts()
    authority, path = _authority(found[1], found[2]), _plain(found[3])
    if found[1] == scheme and authority in hosts:
        begin, _, key = path[1:].partition("/")
        if begin != bucket:
            raise _forbidden("the request is for another bucket")
    elif found[1] == scheme and authority in {f"{bucket}.{host}" for host in hosts}:
        key = path[1:]
    else:
        raise _forbidden("the request is for another store")
    query = []
    for part in (found[4] or "").split("&") if found[4] else []:
        name, _, value = part.partition("=")
        query.append((_plain(name), _plain(value)))
    return _Address(authority, path, key, query)


def _authority(scheme: str, string: str) -> str:
    """A host in lower case, without the port that its scheme has anyway."""
    return string.lower().removesuffix(":443" if scheme == "https" else ":80")


def _plain(string: str) -> str:
    """Unescape a part of an address. Raises ``InvalidArgument`` if other programs could read it differently."""
    if "+" in string or not _ESCAPED.fullmatch(string):
        raise InvalidArgument("the address of the request has '+', or an escape that is none")
    try:
        return unquote_to_bytes(string).decode()
    except UnicodeDecodeError as error:
        raise InvalidArgument("the address of the request is no UTF-8") from error


def _check(asked: _Asked, address: _Address, prefix: str) -> bytes | None:
    """Return the body to sign, if it determines the objects. Raises ``Refused`` for objects outside the table."""
    names = [name for name, _ in address.query if name != _SAYS_NOTHING]
    if len(set(names)) != len(names):
        raise InvalidArgument("a parameter of the request's address is given twice")
    given = dict(address.query)
    if address.key:
        if not is_plain(address.key) or not address.key.startswith(prefix):
            raise _forbidden("the object is not below the table's location")
        allowed = _OBJECT[asked.method]
        fits = any(set(names) <= each and (asked.method in ("GET", "HEAD") or set(names) == each) for each in allowed)
        if not fits:
            raise _forbidden(f"requests of this kind ({', '.join(sorted(names))[:100]}) are not signed")
        return None
    if asked.method == "GET" and set(names) <= _LISTING:
        wanted = given.get("prefix", "")
        if not wanted.startswith(prefix) or not (wanted == prefix or is_plain(wanted.rstrip("/"))):
            raise _forbidden("what is listed is not below the table's location")
        return None
    if asked.method == "POST" and names == ["delete"] and not given["delete"]:
        body = (asked.body or "").encode()
        for key in _deleted(body):
            if not is_plain(key) or not key.startswith(prefix):
                raise _forbidden("an object that is to be deleted is not below the table's location")
        return body
    raise _forbidden("requests for a whole bucket are not signed")


def _deleted(body: bytes) -> Sequence[str]:
    """The keys in the body that deletes objects; there is nothing else in it."""
    body = body.removeprefix(_PROLOG)  # any other instruction, such as of an encoding, is refused
    if not 0 < len(body) <= _MOST_BODY or b"<!" in body or b"<?" in body:
        raise InvalidArgument("the body that deletes objects is missing, too long or no plain XML")
    try:
        root = ElementTree.fromstring(body)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise InvalidArgument("the body that deletes objects is no XML") from error
    keys = []
    for child in root:
        parts = {_tag(each): each for each in child}
        if _tag(child) == "Quiet":
            continue
        if _tag(child) != "Object" or list(parts) != ["Key"] or len(child) != 1 or len(parts["Key"]):
            raise InvalidArgument("the body that deletes objects names more than their keys")
        keys.append(parts["Key"].text or "")
    if _tag(root) != "Delete" or not 0 < len(keys) <= _MOST_KEYS:
        raise InvalidArgument(f"a request deletes from 1 to {_MOST_KEYS:,} objects")
    return keys


def _tag(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def _headers(given: Mapping[str, Sequence[str]], body: bytes | None, bucket: str, prefix: str) -> dict[str, str]:
    """Return the headers to sign. Raises ``Refused`` for headers with effects beyond the request itself."""
    found: dict[str, str] = {}
    for name, values in given.items():
        lower = name.lower()
        if lower in _NOT_SIGNED:
            continue
        value = ",".join(values)
        if lower in found or not _HEADER.fullmatch(lower) or not _VALUE.fullmatch(value):
            raise InvalidArgument("a header of the request is given twice, or cannot be one")
        if not _HARMLESS.fullmatch(lower):
            raise _forbidden(f"requests with the header {lower} are not signed")
        found[lower] = value
    if (source := found.get(_SOURCE)) is not None:
        of, _, key = _plain(source).removeprefix("/").partition("/")
        if "?" in source or of != bucket or not is_plain(key) or not key.startswith(prefix):
            raise _forbidden("the object that is copied is not below the table's location")
    if body is not None:
        digest = sha256(body).hexdigest()
        if found.get(HASH, digest) != digest:
            raise InvalidArgument("the hash of the body is another's")
        found[HASH] = digest
        return found
    found.setdefault(HASH, _UNSIGNED)
    if not _HASH_FORM.fullmatch(found[HASH]):
        raise InvalidArgument(f"the header {HASH} is no hash")
    return found


def _forbidden(why: str) -> Refused:
    return Refused(403, "ForbiddenException", f"the request is not signed: {why}")
