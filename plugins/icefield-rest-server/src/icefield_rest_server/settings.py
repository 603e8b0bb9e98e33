"""The settings of a server: authentication, authorization, and limits of requests."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from icefield.errors import InvalidArgument

from icefield_rest_server.aws_signature import S3Keys
from icefield_rest_server.idempotency import IdempotencyStore
from icefield_rest_server.tokens import Authenticator, Principal

if TYPE_CHECKING:
    from icefield_rest_server.pages import Pages


class CredentialVendor(Protocol):
    """Gives the credentials that open a table's files, by prefix of their locations."""

    def credentials(
        self, principal: Principal | None, table: tuple[str, ...], location: str, writes: bool
    ) -> list[tuple[str, dict[str, str]]]:
        """Prefixes, each with the client's properties for it. ``table`` is the name that the catalog keeps.

        Without ``writes``, the client may not change the table: give properties that only read, if there are any.
        """


class RequestSigner(Protocol):
    """Keys of the server's own, by which it signs requests to a store of S3 for its clients; ``S3Signer`` is one."""

    @property
    def region(self) -> str:
        """The store's region."""

    def keys(self) -> S3Keys:
        """The keys to sign the next request with."""

    def hosts(self) -> tuple[str, tuple[str, ...]]:
        """The scheme and the authorities of the store, for addresses with the bucket in the path."""

    def properties(self, path: str) -> dict[str, str]:
        """Return the properties for clients, with the signing endpoint at a path below the catalog's address."""


_OWN_PATHS: Final = frozenset({"v1", "health", "metrics"})
_ABSOLUTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/+[^/]")

Authorizer = Callable[[Principal | None, str, tuple[str, ...]], bool]
"""Whether somebody may do an operation, such as ``loadTable``, with a namespace, table or view by its levels.

Names have the spelling that the catalog keeps, even if the request spells the same table in another case. Operations
have the names of the protocol's description; all requests of a plan are ``planTableScan``. Requests to sign are
``loadTable``; if they write, ``updateTable`` as well. To create something, a client needs the right for its name and
for its parent: ``createNamespace`` of ``("a", "b")`` is also asked about with ``("a",)``, and of ``("a",)`` with
``()``. ``listNamespaces`` is asked about with the parent namespace, ``()`` at the top.
"""


@dataclass(frozen=True, slots=True)
class Settings:
    """How a server behaves. Sizes are in bytes, times in seconds.

    Without ``authenticator``, programs on this machine have all rights, and other clients have none. ``max_body``
    limits requests that hold metadata: creations and commits; ``max_small_body`` limits all others. ``max_bodies``
    limits all bodies under way together, and one client may use half of it. ``idempotent`` keeps the answers to
    requests with an idempotency key, in ``keys`` if given. ``shared`` is a folder that all processes of the server on
    this machine share, for these answers and for the sums of metrics. ``owned_folders`` are locations for table files,
    besides the location of the table's namespace: a drop with purge deletes only files that the table owns. ``pages``
    are pages for people, by the first part of their path; without ``protocol``, the server has nothing but pages.
    Raises ``InvalidArgument`` for a location without a scheme, and for pages with a path of the server's own.
    """

    authenticator: Authenticator | None = field(default=None, repr=False)
    authorizer: Authorizer | None = None
    vendor: CredentialVendor | None = field(default=None, repr=False)
    signer: RequestSigner | None = field(default=None, repr=False)
    defaults: Mapping[str, str] = field(default_factory=dict)
    overrides: Mapping[str, str] = field(default_factory=dict)
    max_body: int = 32 * 1024 * 1024
    max_small_body: int = 2 * 1024 * 1024
    max_bodies: int = 512 * 1024 * 1024
    max_depth: int = 100
    max_seconds: float = 120.0
    max_page: int = 10_000
    max_plan_page: int = 5_000
    threads: int = 16
    cached_bytes: int = 256 * 1024 * 1024
    idempotent: bool = True
    idempotency_seconds: int = 1800
    owned_folders: Sequence[str] = ()
    keys: IdempotencyStore | None = None
    shared: str | None = None
    pages: Mapping[str, Pages] = field(default_factory=dict)
    protocol: bool = True

    def __post_init__(self) -> None:
        if own := _OWN_PATHS & {*self.pages}:
            raise InvalidArgument(f"/{min(own)} is a path of the server's own: give pages another name")
        if isinstance(self.owned_folders, str) or not all(_ABSOLUTE.match(each) for each in self.owned_folders):
            raise InvalidArgument(
                "owned_folders is a list of locations, each with a scheme, such as s3://bucket/shared"
            )
