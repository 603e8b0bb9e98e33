"""A service signs each request to S3, which checks the signature; what it signs is what it was asked to."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from http_between import Answered, Asked, Between, Forward
from icefield import Catalog, load_catalog
from icefield.errors import AccessDenied, IcefieldError, InvalidArgument
from icefield.scan import read_tasks
from icefield_rest_server import Settings, app
from rest_description import check_request
from rest_served import served
from servers.s3 import S3
from signed_store import REGION, Store, signature

SCHEMA = pa.schema([("id", pa.int64())])
JSON = {"Content-Type": "application/json"}


class Signer(Between):
    """What stands before our server, and signs; ``spoil`` changes what it answers."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.signed: list[dict[str, Any]] = []
        self.spoil: Any = None

        def behave(asked: Asked, forward: Forward) -> Answered | None:
            path = asked.path.partition("?")[0]
            if path.endswith("/sign"):
                check_request(asked.method, asked.path, asked.body)
                body = json.loads(asked.body)
                self.signed.append(body)
                headers = signature(body["method"], body["uri"], {k: v[0] for k, v in body["headers"].items()})
                answer = {"uri": body["uri"], "headers": {name: [value] for name, value in headers.items()}}
                return Answered(200, JSON, json.dumps(self.spoil(answer) if self.spoil else answer).encode())
            found = forward(asked)
            if path.endswith("/v1/config"):
                body = json.loads(found.body)
                body["endpoints"].append("POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/sign")
                return Answered(200, JSON, json.dumps(body).encode())
            return found

        self.behave = behave


@pytest.fixture
def store(s3: S3) -> Iterator[Store]:
    with Store(s3).open() as made:
        assert isinstance(made, Store)
        yield made


@pytest.fixture
def signer(s3: S3, store: Store, tmp_path: Path) -> Iterator[Signer]:
    own = {**s3.properties, "s3.path-style-access": "true"}
    uri, warehouse = f"sqlite:///{tmp_path}/catalog.db", f"s3://{s3.bucket}/{tmp_path.name}"
    given = {"s3.endpoint": store.url, "s3.path-style-access": "true", "s3.remote-signing-enabled": "true"}
    with load_catalog("served", type="sql", uri=uri, warehouse=warehouse, **own) as catalog:
        catalog.create_namespace("db")
        defaults = {**given, "s3.region": REGION}
        with served(app(catalog, Settings(defaults=defaults))) as address, Signer(address).open() as made:
            assert isinstance(made, Signer)
            yield made


@pytest.fixture
def catalog(signer: Signer) -> Iterator[Catalog]:
    with load_catalog("test", type="rest", uri=signer.url) as made:
        yield made


def test_a_table_is_written_read_and_purged_by_requests_that_the_service_signs(
    catalog: Catalog, signer: Signer, store: Store
) -> None:
    table = catalog.create_table("db.t", SCHEMA)
    table.append(pa.table({"id": list(range(1_000))}))
    assert catalog.load_table("db.t").scan("id < 10").to_arrow().num_rows == 10
    table.io.delete_many([task.file.file_path for task in table.scan().plan_files()] + [f"{table.location()}/none"])
    assert store.refused == []
    assert {asked.method for asked in store.taken} >= {"PUT", "GET", "POST"}
    assert len(signer.signed) == len(store.taken)
    assert [body["method"] for body in signer.signed if "body" in body] == ["POST"]
    assert "<Delete" in next(body["body"] for body in signer.signed if "body" in body)
    assert "signs each request" in str(table.io.file_system(table.location()).credentials(table.location()))


def test_a_scan_in_another_process_has_its_requests_signed_too(catalog: Catalog, store: Store) -> None:
    table = catalog.create_table("db.t", SCHEMA)
    table.append(pa.table({"id": [1, 2]}))
    scan = table.scan()
    tasks, context = list(scan.plan_files()), pickle.loads(pickle.dumps(scan.context))
    assert sum(batch.num_rows for batch in read_tasks(tasks, context, workers=1)) == 2
    assert store.refused == []


def other_key(answer: dict[str, Any]) -> dict[str, Any]:
    return {**answer, "uri": answer["uri"].partition("?")[0] + "-of-somebody-else"}


def other_host(answer: dict[str, Any]) -> dict[str, Any]:
    return {**answer, "uri": answer["uri"].replace("127.0.0.1", "localhost")}


def with_header(name: str, value: str) -> Any:
    return lambda answer: {**answer, "headers": {**answer["headers"], name: [value]}}


def without_signature(answer: dict[str, Any]) -> dict[str, Any]:
    return {**answer, "headers": {k: v for k, v in answer["headers"].items() if k.lower() != "authorization"}}


@pytest.mark.parametrize(
    "spoil",
    [
        other_key,
        other_host,
        with_header("x-amz-acl", "public-read"),
        with_header("x-amz-copy-source", "/other/key"),
        with_header("x-amz-content-sha256", "0" * 64),
        with_header("authorization", "AWS4 a\r\nx-evil: 1"),
        without_signature,
    ],
)
def test_what_is_not_the_request_that_was_asked_for_is_not_sent(
    catalog: Catalog, signer: Signer, store: Store, spoil: Any
) -> None:
    table = catalog.create_table("db.t", SCHEMA)
    sent = len(store.asked)
    signer.spoil = spoil
    with pytest.raises(AccessDenied) as caught:
        table.append(pa.table({"id": [1]}))
    assert "public-read" not in str(caught.value)
    assert len(store.asked) == sent


@pytest.mark.parametrize("answer", [{}, {"uri": 7, "headers": {}}, {"uri": "x", "headers": {"a": "b"}}])
def test_an_answer_that_is_no_signature_is_one_error(catalog: Catalog, signer: Signer, answer: dict[str, Any]) -> None:
    table = catalog.create_table("db.t", SCHEMA)
    signer.spoil = lambda given: answer
    with pytest.raises(IcefieldError):
        table.append(pa.table({"id": [1]}))


def test_a_signer_on_a_host_that_nobody_named_is_asked_for_nothing(signer: Signer, store: Store) -> None:
    other = "http://127.0.0.1:9/"
    with load_catalog("test", type="rest", uri=signer.url, **{"s3.signer.uri": other}) as catalog:
        table = catalog.create_table("db.t", SCHEMA)
        with pytest.raises(AccessDenied, match=r"rest\.trusted-hosts"):
            table.append(pa.table({"id": [1]}))
    assert store.asked == []
    assert urlsplit(other).port == 9


def test_without_a_service_nothing_is_signed_elsewhere() -> None:
    with (
        load_catalog("d", type="directory", warehouse="s3://b/w", **{"s3.remote-signing-enabled": "true"}) as catalog,
        pytest.raises(InvalidArgument, match="type 'rest'"),
    ):
        catalog.io.exists("s3://b/x")
