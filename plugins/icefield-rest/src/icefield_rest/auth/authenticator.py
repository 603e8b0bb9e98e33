"""The contract of an authenticator."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Post = Callable[[str, Mapping[str, str], Mapping[str, str]], tuple[int, bytes]]
"""Send a form to an address: the form and the headers; gives the status and the body of the answer."""


@dataclass(frozen=True, slots=True)
class Unsigned:
    """A request before its credentials are added."""

    method: str
    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)


class Authenticator(ABC):
    """Gives the credentials of each request. Serves several threads at once; its ``repr`` shows no secret.

    Plugins provide authenticators with the hook ``icefield_rest_authenticators``; ``rest.auth.type`` names one.
    """

    def __init__(self, name: str, properties: Mapping[str, str], post: Post) -> None:  # noqa: B027 -- none is required
        """Read the properties of the catalog ``name``; ``post`` reaches a token service. Raises ``InvalidArgument``."""

    @abstractmethod
    def headers(self, request: Unsigned) -> Mapping[str, str]:
        """The headers to add. Raises ``AccessDenied`` if no credentials can be obtained."""

    def renew(self, refused: Mapping[str, str]) -> bool:
        """Renew credentials after rejected or expired headers. Returns whether there are new headers.

        If another thread has renewed them already, nothing is fetched.
        """
        return False

    def says(self) -> str | None:
        """Which credentials these are, in words that hold no secret."""
        return None

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Nobody(Authenticator):
    """Sends no credentials."""

    def headers(self, request: Unsigned) -> Mapping[str, str]:
        return {}
