"""S3 that checks the signature of each request, as botocore computes it: moto takes any."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from http_between import Answered, Asked, Between, Forward
from servers.s3 import S3

KEY, SECRET, REGION = "AKSIGNER", "planted-secret-of-the-signer", "us-east-1"


class Auth(S3SigV4Auth):  # type: ignore[misc]
    """botocore's signer for a request without its body: the hash of the body is among the headers."""

    def _modify_request_before_signing(self, request: Any) -> None:
        given = request.headers["x-amz-content-sha256"]
        super()._modify_request_before_signing(request)
        del request.headers["x-amz-content-sha256"]
        request.headers["x-amz-content-sha256"] = given


def signature(method: str, url: str, headers: dict[str, str], at: str | None = None) -> dict[str, str]:
    """The headers of a request with the signature that botocore computes, for now or for the time ``at``."""
    own = {name: value for name, value in headers.items() if name.lower() not in ("authorization", "host")}
    parts = urlsplit(url)
    request = AWSRequest(method, f"{parts.scheme}://{parts.netloc}{parts.path}?{parts.query}".rstrip("?"), headers=own)
    auth = Auth(Credentials(KEY, SECRET), "s3", REGION)
    if at is None:
        auth.add_auth(request)
        return dict(request.headers.items())
    request.context["timestamp"] = at
    return {"Authorization": auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request)}


class Store(Between):
    """S3 that checks each signature by computing it again."""

    def __init__(self, s3: S3) -> None:
        super().__init__(s3.url)
        self.refused: list[str] = []
        self.taken: list[Asked] = []

        def behave(asked: Asked, forward: Forward) -> Answered | None:
            given = asked.headers.get("authorization", "")
            named = given.partition("SignedHeaders=")[2].partition(",")[0].split(";")
            kept = {name: value for name, value in asked.headers.items() if name in named}
            at = asked.headers.get("x-amz-date")
            url = f"http://{asked.headers['host']}{asked.path}"
            right = at is not None and signature(asked.method, url, kept, at)["Authorization"]
            if not given or given.rpartition("Signature=")[2] != right:
                self.refused.append(asked.path)
                return Answered(403, {"Content-Type": "application/xml"}, b"<Error><Code>AccessDenied</Code></Error>")
            self.taken.append(asked)
            return forward(asked)

        self.behave = behave
