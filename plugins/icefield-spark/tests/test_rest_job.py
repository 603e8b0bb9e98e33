"""A job that knows a REST server's address and a token: vended credentials reach the executors, and nobody else."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import boto3
import icefield
import pytest
from http_between import Answered, Asked, Between, Forward
from icefield_rest_server import Settings, app
from icefield_rest_server.credentials import StsCredentials
from icefield_rest_server.tokens import Principal, StaticTokens
from left_by_spark import run_job, search
from rest_served import served
from servers.s3 import S3

JOB = Path(__file__).with_name("rest_job.py")
TOKEN = "PLANTED7351-token-of-the-job"
KEY = re.compile(r"Credential=([^/]+)/")


class Vendor(StsCredentials):
    """Keys of STS, noted."""

    def __init__(self, client: Any) -> None:
        super().__init__(client, "arn:aws:iam::123456789012:role/tables", region="us-east-1")
        self.given: list[dict[str, str]] = []

    def credentials(
        self, principal: Principal | None, table: tuple[str, ...], location: str, writes: bool
    ) -> list[tuple[str, dict[str, str]]]:
        found = super().credentials(principal, table, location, writes)
        self.given += [properties for _, properties in found]
        return found


@pytest.mark.spark
@pytest.mark.slow
def test_a_job_with_an_address_and_a_token_works_on_s3_and_shows_no_secret(s3: S3, tmp_path: Path) -> None:
    sts = boto3.client(
        "sts", endpoint_url=s3.url, region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b"
    )
    vendor = Vendor(sts)
    own = {**s3.properties, "s3.path-style-access": "true"}
    with (
        Between(s3.url).open() as store,
        icefield.load_catalog(
            "served", type="sql", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"s3://{s3.bucket}/rest-job", **own
        ) as catalog,
    ):

        def behave(asked: Asked, forward: Forward) -> Answered | None:
            signed = KEY.search(asked.headers.get("authorization", ""))
            keys = {each["s3.access-key-id"] for each in vendor.given}
            return forward(asked) if signed is not None and signed[1] in keys else Answered(403)

        store.behave = behave
        settings = Settings(
            authenticator=StaticTokens({"job": TOKEN}),
            vendor=vendor,
            defaults={"s3.endpoint": store.url, "s3.path-style-access": "true"},
        )
        folder = tmp_path / "job"
        folder.mkdir()
        with served(app(catalog, settings)) as uri:
            ran = run_job(JOB, folder, {"type": "rest", "uri": uri, "token": TOKEN})
        assert ran.returncode == 0, ran.stderr[-4_000:]
        assert "rows 2000" in ran.stdout
        assert catalog.load_table("db.u").scan().count() == 2000
        assert catalog.load_table("db.t").scan("kind = 'x'").to_arrow().to_pydict()["id"] == [8]
        written = [asked for asked in store.asked if asked.method in ("PUT", "POST") and "/data/" in asked.path]
        assert written, "executors wrote with vended keys"
    secrets = {TOKEN, own["s3.secret-access-key"]}
    secrets |= {each[name] for each in vendor.given for name in ("s3.secret-access-key", "s3.session-token")}
    assert len(secrets) > 3
    assert search(folder, sorted(secrets)) > 30
    _was_worth_searching(folder, ran.stdout)


def _was_worth_searching(folder: Path, printed: str) -> None:
    assert "== Physical Plan ==" in printed
    assert "provoked" in printed
    kept = re.search(r"kept (\d+) pages of (\d+) executions", printed)
    assert kept is not None
    assert int(kept[2]) > 5
    pages = "".join(path.read_text("utf-8", "replace") for path in (folder / "ui").iterdir())
    assert "MapInArrow" in pages
    assert "\nDEBUG org.apache.spark" in (folder / "logs" / "jvm.log").read_text("utf-8")
    logged = [path.read_text("utf-8") for path in (folder / "logs").glob("python-*.log")]
    assert len(logged) >= 3, "the driver and its workers"
    assert any("aiobotocore" in each or "botocore" in each for each in logged)
    events = "".join(path.read_text("utf-8") for path in (folder / "events").rglob("*") if path.is_file())
    assert "SparkListenerSQLExecutionStart" in events
