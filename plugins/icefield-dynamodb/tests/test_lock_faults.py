"""What is said of a commit is so while the service of the lock fails: requests lost, unanswered, cut or refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

import pytest
from botocore.retries.standard import ExponentialBackoff
from http_between import Answered, Asked, Behaviour, Between, Forward, lose_reply
from icefield import LocalFileSystem
from store_faults import CommitFaults

from .conftest import BareFileSystem

THROTTLED = Answered(
    400,
    {"content-type": "application/x-amz-json-1.0"},
    b'{"__type": "com.amazonaws.dynamodb.v20120810#ThrottlingException", "message": "slow down"}',
)


def done_and_502(asked: Asked, forward: Forward) -> Answered | None:
    """The service does it, and what stands before it says that it did not hear of it."""
    forward(asked)
    return Answered(502)


class DoneThenThrottled:
    """The service does it, its reply is lost, and each further try is refused."""

    def __init__(self) -> None:
        self.tried = 0

    def __call__(self, asked: Asked, forward: Forward) -> Answered | None:
        self.tried += 1
        return lose_reply(asked, forward) if self.tried == 1 else THROTTLED


@pytest.mark.slow
class TestLockWithFence(CommitFaults):
    """The table is on a local disk; what fails stands before DynamoDB."""

    prefix = "file"
    commit = "dynamodb-lock"
    least_requests: ClassVar[int] = 3

    # The SDK tries a request four times: a fault is made up for, or outlasts it.
    @pytest.fixture(autouse=True, params=[1, 4], ids=["made-up-for", "lasting"])
    def lock(
        self, request: pytest.FixtureRequest, lock_properties: dict[str, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.tries = request.param
        quiet = {"lock.heartbeat-interval-ms": "60000", "lock.heartbeat-timeout-ms": "90000"}  # no beat is counted
        given = {**lock_properties, **quiet, "file.sync": "false"}
        self.more_properties = {name: value for name, value in given.items() if name != "dynamodb.endpoint"}
        monkeypatch.setattr(ExponentialBackoff, "delay_amount", lambda self, context: 0.01)

    @pytest.fixture
    def between(self, dynamodb: dict[str, str]) -> Iterator[Between]:
        with Between(dynamodb["dynamodb.endpoint"]).open() as between:
            yield between

    @pytest.fixture
    def root(self, tmp_path: Path) -> str:
        return f"file://{tmp_path}/warehouse"

    def reached(self, url: str) -> Mapping[str, str]:
        return {"dynamodb.endpoint": url}

    def fault(self, name: str, between: Between) -> Behaviour:
        more: dict[str, Behaviour] = {
            "half-reply": between.half_reply,  # half a request ends dynalite
            "done-and-502": done_and_502,
            "done-then-throttled": DoneThenThrottled(),
            "throttled": lambda asked, forward: THROTTLED,
        }
        return more.get(name) or super().fault(name, between)

    @pytest.mark.spec("COMMIT-02", "FS-13", "FS-14")
    @pytest.mark.parametrize(
        "name", ["lose-request", "lose-reply", "half-reply", "503", "done-and-502", "throttled", "done-then-throttled"]
    )
    def test_whatever_request_of_a_commit_fails_what_is_said_is_what_is_so(
        self, between: Between, root: str, name: str
    ) -> None:
        super().test_whatever_request_of_a_commit_fails_what_is_said_is_what_is_so(between, root, name)


class TestDecidedByItems(TestLockWithFence):
    """Storage without a fence: the item that decides is put through what fails."""

    least_requests: ClassVar[int] = 5

    @pytest.fixture(autouse=True)
    def bare(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(LocalFileSystem, "abilities", BareFileSystem.abilities)
        monkeypatch.setattr(LocalFileSystem, "rename", BareFileSystem.rename)
