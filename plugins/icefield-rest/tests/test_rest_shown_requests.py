"""Services and proxies that show a request back, with the credentials in it."""

from __future__ import annotations

import json
from base64 import b64encode

import pytest
from http_between import Answered, Asked, Between, Forward
from icefield import load_catalog
from icefield.errors import IcefieldError

SECRET = "token-that-nobody-else-sees"
WAITS = {"rest.retry.num-retries": "0"}


def shown_back(asked: Asked, status: int, modelled: bool) -> Answered:
    shown = f"bad request {'x' * 400 if modelled else ''}{asked.headers}"
    error = {"error": {"message": shown, "type": shown, "code": status}}
    return Answered(status, {}, json.dumps(error).encode() if modelled else shown.encode())


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 500])
@pytest.mark.parametrize("modelled", [True, False])
@pytest.mark.parametrize(
    "given",
    [
        {"token": SECRET},
        {"header.Authorization": f"Bearer {SECRET}", "rest.auth.type": "none"},
        {"header.X-Api-Key": SECRET},
        {"rest.auth.type": "basic", "rest.auth.basic.username": "a", "rest.auth.basic.password": SECRET},
    ],
)
def test_a_request_that_is_shown_back_shows_no_credential(given: dict[str, str], modelled: bool, status: int) -> None:
    def reply(asked: Asked, forward: Forward) -> Answered | None:
        assert SECRET in f"{asked.headers}" or b64encode(f"a:{SECRET}".encode()).decode() in f"{asked.headers}"
        return shown_back(asked, status, modelled) if asked.path.endswith("/tables/t") else Answered(200, {}, b"{}")

    with Between("http://127.0.0.1:9").open() as between:
        between.behave = reply
        with (
            load_catalog("test", type="rest", uri=between.url, **WAITS, **given) as catalog,
            pytest.raises(IcefieldError) as raised,
        ):
            catalog.load_table("db.t")
    chain = f"{raised.value!r} {raised.value.__cause__!r}"
    assert SECRET not in chain
    assert SECRET[:12] not in chain
    assert b64encode(f"a:{SECRET}".encode()).decode() not in chain
