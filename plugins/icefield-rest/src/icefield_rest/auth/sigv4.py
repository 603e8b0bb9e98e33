"""AWS Signature Version 4 for requests to Amazon's services: Glue, S3 Tables, and services behind API Gateway."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import BotoCoreError
from botocore.session import Session
from icefield.errors import AccessDenied, InvalidArgument
from icefield.toolkit import without_debug_log

from icefield_rest.auth.authenticator import Authenticator, Post, Unsigned

_SIGNED: Final = ("accept", "content-type", "idempotency-key")


class SigV4(Authenticator):
    """AWS Signature Version 4, with the credentials of the properties or of the SDK's chain."""

    def __init__(self, name: str, properties: Mapping[str, str], post: Post) -> None:
        def first(part: str) -> str | None:
            return properties.get(f"rest.{part}") or properties.get(f"client.{part}")

        self._service = properties.get("rest.signing-name", "execute-api")
        session = Session(profile=first("profile-name"))
        region = properties.get("rest.signing-region") or first("region") or session.get_config_variable("region")
        if not region:
            raise InvalidArgument(f"catalog '{name}' signs its requests: it needs rest.signing-region")
        self._region = region
        if not session.get_config_variable("region"):
            session.set_config_variable("region", region)  # roles are asked for somewhere
        key, secret = first("access-key-id"), first("secret-access-key")
        if (key is None) != (secret is None):
            raise InvalidArgument("rest.access-key-id and rest.secret-access-key belong together: one is not set")
        self._given = Credentials(key, secret, first("session-token")) if key else None
        self._session = session

    def headers(self, request: Unsigned) -> Mapping[str, str]:
        try:
            with without_debug_log("botocore"):
                credentials = self._given or self._session.get_credentials()
            if credentials is None:
                raise AccessDenied(
                    "there are no credentials of AWS to sign with: set rest.access-key-id and rest.secret-access-key, "
                    "or what the SDK finds by itself"
                )
            found = {key: value for key, value in request.headers.items() if key.lower() in _SIGNED}
            made = AWSRequest(request.method, request.url, headers=found, data=request.body)
            with without_debug_log("botocore"):
                SigV4Auth(credentials.get_frozen_credentials(), self._service, self._region).add_auth(made)
        except BotoCoreError as error:
            raise AccessDenied(f"the credentials of AWS cannot be had: {type(error).__name__}") from error
        return {key: value for key, value in made.headers.items() if key not in found}

    def says(self) -> str | None:
        chosen = f"the key '{self._given.access_key}'" if self._given else "the credentials of the AWS SDK"
        return f"{chosen}, for {self._service} in {self._region}"
