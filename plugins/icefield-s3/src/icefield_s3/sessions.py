"""How the store is reached: the SDK's session with its chain of credentials, and connections that repeat nothing."""

from __future__ import annotations

import asyncio
from functools import lru_cache, partial
from io import BytesIO
from typing import Any, Final

from aiobotocore.config import AioConfig
from aiobotocore.credentials import (
    AioAssumeRoleCredentialFetcher,
    AioCredentials,
    AioDeferredRefreshableCredentials,
)
from aiobotocore.httpsession import AIOHTTPSession
from aiobotocore.session import AioSession
from aiohttp import BytesIOPayload, BytesPayload, ClientPayloadError
from botocore.credentials import ReadOnlyCredentials
from botocore.exceptions import ConnectionClosedError, NoCredentialsError
from botocore.loaders import Loader, create_loader
from icefield.abc import FileAccess
from icefield.errors import StorageError
from icefield.toolkit import LimitedStream, answer_limit

from icefield_s3.settings import Role, S3Settings, settings_of

_SMALL: Final = 1024 * 1024  # aiohttp warns of more in one piece


class _SentOnce:
    """A body that is sent once.

    aiohttp repeats a PUT when a reused connection breaks, unless the body is consumed. The second answer would then
    hide that the first request may have been carried out, although its answer was lost.
    """

    @property
    def consumed(self) -> bool:
        """Whether the body cannot be sent again."""
        return True


class SmallBody(_SentOnce, BytesPayload):
    """A body in one piece."""


class LargeBody(_SentOnce, BytesIOPayload):
    """A body in several pieces, between which other requests go on."""


class Connections(AIOHTTPSession):  # type: ignore[misc]
    """The SDK's connections. One upload is one request, and an answer is read only up to a maximum length."""

    async def send(self, request: Any) -> Any:
        """Send a request with its body at once: to learn first that it may cost a round trip more."""
        request.headers.pop("Expect", None)
        if isinstance(request.body, BytesIO):  # each upload has such a body, an empty file too
            small = request.body.getbuffer().nbytes <= _SMALL
            request.body = SmallBody(request.body.getvalue()) if small else LargeBody(request.body)
        streamed, request.stream_output = request.stream_output, True
        try:
            answer = await super().send(request)
        except ConnectionClosedError as error:
            if isinstance(error.__context__, ClientPayloadError):  # aiohttp sends no consumed body elsewhere
                message = "the store redirects uploads to another address; set s3.region or s3.endpoint"
                raise StorageError(message, retryable=False) from None
            raise
        found = answer.raw
        found.content = LimitedStream(found.content, answer_limit(found.status, found.request_info.headers))
        if not streamed:
            await answer.content
        return answer


class KnownCredentials:
    """A provider of known credentials, in place of the SDK's chain."""

    def __init__(self, credentials: AioCredentials) -> None:
        self._credentials = credentials

    async def load_credentials(self) -> AioCredentials:
        """Return the credentials."""
        return self._credentials


def config_of(settings: S3Settings) -> dict[str, Any]:
    """The SDK's configuration: time-outs, no retries of its own, how a bucket is addressed."""
    checksums = "when_supported" if settings.checksums else "when_required"
    options: dict[str, Any] = {
        "connect_timeout": settings.connect_timeout,
        "read_timeout": settings.request_timeout,
        "retries": {"total_max_attempts": 1, "mode": "standard"},
        "http_session_cls": Connections,
        "max_pool_connections": 64,
        "user_agent_extra": "icefield",
        "request_checksum_calculation": checksums,
        "response_checksum_validation": checksums,
        "s3": {"addressing_style": settings.addressing, "use_accelerate_endpoint": settings.accelerate},
    }
    if settings.dualstack:
        options["use_dualstack_endpoint"] = True
    if settings.proxy:
        options["proxies"] = {"http": settings.proxy, "https": settings.proxy}
    return options


class Renewed(AioCredentials):  # type: ignore[misc]
    """Credentials that a catalog's service vends, and renews before they expire."""

    def __init__(self, access: FileAccess, settings: S3Settings) -> None:
        super().__init__(settings.access_key, settings.secret_key, settings.token, method="vended")
        self._access = access

    async def get_frozen_credentials(self) -> ReadOnlyCredentials:
        """Return the credentials for the next request. Asking the service blocks, and runs in a thread of its own."""
        access = self._access
        given = await asyncio.to_thread(access.properties) if access.due else access.properties()
        found = settings_of(given)
        return ReadOnlyCredentials(found.access_key, found.secret_key, found.token)


def session_of(settings: S3Settings, access: FileAccess | None = None) -> AioSession:
    """A session with the credentials of a service or a role, if there is one, else of the SDK's chain."""
    session = _session(settings)
    own: AioCredentials | None = None
    if settings.role is not None and not settings.anonymous:
        own = AioDeferredRefreshableCredentials(partial(_assume, settings.role, settings), "assume-role")
    elif access is not None and settings.access_key is not None:
        own = Renewed(access, settings)
    if own is not None:
        session.register_component("credential_provider", KnownCredentials(own))
    return session


def _session(settings: S3Settings) -> AioSession:
    session = AioSession(profile=settings.profile)
    session.register_component("data_loader", _descriptions(session.get_config_variable("data_path")))
    return session


@lru_cache(maxsize=8)
def _descriptions(folders: str | None) -> Loader:
    """Return the SDK's descriptions of services: megabytes of JSON, which each session would otherwise read anew.

    A catalog may vend credentials for each table, and each needs a session.
    """
    return create_loader(folders)


async def _assume(role: Role, settings: S3Settings) -> dict[str, Any]:
    """Fetch credentials of the role, by the credentials of the properties or of the SDK's chain."""
    own = _session(settings)
    if settings.access_key is not None:
        source = AioCredentials(settings.access_key, settings.secret_key, settings.token)
    else:
        source = await own.get_credentials()
    if source is None:
        raise NoCredentialsError
    wanted = {"RoleSessionName": role.session or "icefield", "ExternalId": role.external_id}
    config = AioConfig(connect_timeout=settings.connect_timeout, read_timeout=settings.request_timeout)
    fetcher = AioAssumeRoleCredentialFetcher(
        partial(own.create_client, region_name=role.region, config=config),
        source,
        role.arn,
        extra_args={name: value for name, value in wanted.items() if value},
    )
    credentials: dict[str, Any] = await fetcher.fetch_credentials()
    return credentials
