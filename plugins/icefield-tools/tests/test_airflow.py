"""Tables of Icefield in DAGs of Airflow."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

os.environ["AIRFLOW_HOME"] = tempfile.mkdtemp(prefix="icefield-airflow-")  # before Airflow is imported
os.environ |= {"AIRFLOW__CORE__LOAD_EXAMPLES": "false", "AIRFLOW__CORE__UNIT_TEST_MODE": "false"}

import icefield as ice
import pyarrow as pa
import pytest
from airflow.providers_manager import ProvidersManager
from airflow.sdk.definitions.connection import Connection
from fenced import Page
from icefield_tools.airflow import IcefieldHook, IcefieldTableTrigger
from icefield_tools.airflow.hook import catalog_of_connection

ROWS = pa.table({"id": [1, 2], "day": pa.array(["2024-01-01", "2024-01-02"]).cast(pa.date32())})
README = Path("plugins/icefield-tools/README.md")
_IMPORTS = """
from datetime import timedelta

import pyarrow as pa
from airflow.sdk import DAG, task
from icefield_tools.airflow import IcefieldHook, IcefieldTableSensor
"""


@pytest.fixture(scope="module", autouse=True)
def database() -> None:
    """The database of Airflow, in which runs of DAGs are kept."""
    subprocess.run([sys.executable, "-m", "airflow", "db", "migrate"], check=True, capture_output=True)


@pytest.fixture
def properties(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    found = {
        "type": "sql",
        "uri": f"sqlite:///{tmp_path}/lake.db",
        "warehouse": f"file://{tmp_path}/lake",
    }
    connection = {"conn_type": "icefield", "extra": {"catalog": "lake", **found}}
    monkeypatch.setenv("AIRFLOW_CONN_ICEFIELD_DEFAULT", json.dumps(connection))
    return found


@pytest.fixture
def catalog(properties: dict[str, str]) -> Iterator[ice.Catalog]:
    with ice.load_catalog("lake", **properties) as made:
        made.create_namespace("db")
        yield made


def event_of(trigger: IcefieldTableTrigger, during: Any = None) -> dict[str, Any]:
    """The event of a trigger that Airflow stored and made again, and ``during`` called while it waits."""
    module, _, name = trigger.serialize()[0].rpartition(".")
    arguments = json.loads(json.dumps(trigger.serialize()[1]))
    again = getattr(sys.modules[module], name)(**arguments)

    async def first() -> dict[str, Any]:
        waiting = asyncio.ensure_future(anext(aiter(again.run())))
        if during is not None:
            await asyncio.sleep(0.3)
            assert not waiting.done()
            await asyncio.to_thread(during)
        payload: dict[str, Any] = (await asyncio.wait_for(waiting, 20)).payload
        return payload

    return asyncio.run(first())


def run(name: str, source: str, *, succeeds: bool = True) -> str:
    """What Airflow prints when it runs a DAG of that name, with its own database, from a file."""
    folder = Path(os.environ["AIRFLOW_HOME"]) / "dags"
    folder.mkdir(exist_ok=True)
    file = folder / f"{name}.py"
    file.write_text(source)
    try:
        command = [sys.executable, "-m", "airflow", "dags", "test", name]
        ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=400)
    finally:
        file.unlink()
    assert ("state=success" in ran.stdout, "state=failed" in ran.stdout) == (succeeds, not succeeds), ran.stdout
    return ran.stdout


def test_a_connection_has_the_properties_of_its_catalog(catalog: ice.Catalog, properties: dict[str, str]) -> None:
    hook = IcefieldHook()
    assert (hook.get_conn().name, hook.get_conn().list_namespaces()) == ("lake", [("db",)])
    assert hook.test_connection() == (True, "the catalog answers; namespaces at its top: 1")
    catalog.create_table("db.t", ROWS)
    assert hook.load_table("db.t").name() == ("db", "t")


def test_fields_of_a_connection_are_properties_and_the_extra_takes_precedence() -> None:
    extra = json.dumps({"type": "sql", "uri": "sqlite:///:memory:", "flag": True, "number": 3})
    fields = {"host": "http://host", "schema": "file:///data", "login": "id", "password": "secret", "extra": extra}
    made = catalog_of_connection(Connection(conn_id="c", conn_type="icefield", **fields)).properties
    assert (made["uri"], made["warehouse"], made["credential"]) == ("sqlite:///:memory:", "file:///data", "id:secret")
    assert (made["flag"], made["number"]) == ("true", "3")
    token = catalog_of_connection(Connection(conn_id="c", password="t", extra=extra)).properties
    assert token["token"] == "t"
    assert "credential" not in token


@pytest.mark.parametrize(
    ("value", "kind"), [({"x-team": "hunter2"}, "an object"), (["hunter2"], "an array"), (None, "null")]
)
def test_an_extra_with_a_value_that_is_no_property_is_refused_by_its_key(
    value: Any, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = {"conn_type": "icefield", "extra": {"type": "sql", "uri": "sqlite:///:memory:", "header": value}}
    monkeypatch.setenv("AIRFLOW_CONN_NESTED", json.dumps(connection))
    answers, message = IcefieldHook("nested").test_connection()
    assert not answers
    assert f"the extra of connection 'nested' has {kind} for 'header'" in message
    assert "hunter2" not in message


def test_a_catalog_that_does_not_answer_is_told_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = {
        "conn_type": "icefield",
        "password": "hunter2",
        "extra": {"type": "sql", "uri": "sqlite:////no/such/folder/c.db"},
    }
    monkeypatch.setenv("AIRFLOW_CONN_BROKEN", json.dumps(connection))
    answers, message = IcefieldHook("broken").test_connection()
    assert not answers
    assert "hunter2" not in message
    assert "/no/such/folder" in message


def test_airflow_lists_the_type_of_the_connections() -> None:
    manager = ProvidersManager()
    assert manager.hooks["icefield"].hook_class_name == "icefield_tools.airflow.hook.IcefieldHook"
    assert manager.providers["icefield-tools"].data["name"] == "Icefield"


def test_a_trigger_fires_when_its_table_is_made_and_has_rows(catalog: ice.Catalog) -> None:
    trigger = IcefieldTableTrigger("db.t", filter="id > 1", poke_interval=0.05)
    event = event_of(trigger, lambda: catalog.create_table("db.t", ROWS).append(ROWS))
    snapshot = catalog.load_table("db.t").current_snapshot()
    assert event == {
        "found": {
            "table": "db.t",
            "branch": "main",
            "snapshot_id": str(snapshot.snapshot_id),
            "timestamp_ms": snapshot.timestamp_ms,
        }
    }


def test_a_trigger_waits_for_rows_that_its_filter_takes_on_its_branch(catalog: ice.Catalog) -> None:
    table = catalog.create_table("db.t", ROWS)
    table.append(ROWS)
    table.manage_snapshots().create_branch(None, "audit").commit()
    more = pa.table({"id": [3], "day": pa.array(["2024-01-03"]).cast(pa.date32())})
    trigger = IcefieldTableTrigger("db.t", "audit", filter="day = DATE '2024-01-03'", poke_interval=0.05)
    table.refresh().append(more)  # on main
    event = event_of(trigger, lambda: table.refresh().append(more, branch="audit"))
    assert event["found"]["snapshot_id"] == str(table.refresh().snapshot_by_name("audit").snapshot_id)


def test_a_trigger_waits_for_a_snapshot_that_is_newer(catalog: ice.Catalog) -> None:
    table = catalog.create_table("db.t", ROWS)
    table.append(ROWS)
    old = table.current_snapshot()
    trigger = IcefieldTableTrigger("db.t", newer_than=old.timestamp_ms, poke_interval=0.05)
    event = event_of(trigger, lambda: table.append(ROWS))
    assert event["found"]["snapshot_id"] == str(table.refresh().current_snapshot().snapshot_id)
    assert event_of(IcefieldTableTrigger("db.t", newer_than="2024-01-01 00:00:00+00:00"))["found"]


def test_an_error_that_will_not_pass_ends_the_wait(catalog: ice.Catalog) -> None:
    catalog.create_table("db.t", ROWS).append(ROWS)
    error = event_of(IcefieldTableTrigger("db.t", filter="nothing = 1", poke_interval=0.05))["error"]
    assert "nothing" in error


def test_an_error_that_may_pass_is_waited_for(catalog: ice.Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog.create_table("db.t", ROWS).append(ROWS)
    load, failures = ice.Catalog.load_table, [ice.errors.StorageError("busy", retryable=True)] * 3

    def failing(self: ice.Catalog, *arguments: Any, **named: Any) -> ice.Table:
        if failures:
            raise failures.pop()
        return load(self, *arguments, **named)

    monkeypatch.setattr(ice.Catalog, "load_table", failing)
    assert event_of(IcefieldTableTrigger("db.t", poke_interval=0.01))["found"]
    assert not failures


@pytest.mark.parametrize("deferrable", [True, False])
def test_a_sensor_waits_for_a_table_in_a_dag(catalog: ice.Catalog, deferrable: bool) -> None:
    """With ``deferrable`` it is Airflow that stores the trigger and runs it."""
    dag = f"""
with DAG("waiting", schedule=None):
    wait = IcefieldTableSensor(
        task_id="wait", table="db.{{{{ 't' }}}}", filter="id = 2", deferrable={deferrable}, poke_interval=1, timeout=60
    )

    @task
    def read(found):
        table = IcefieldHook().load_table(found["table"])
        table.append(table.scan("id = 2", snapshot_id=int(found["snapshot_id"])).to_arrow())

    read(wait.output)
"""

    def write() -> None:
        table = catalog.create_table("db.t", ROWS)
        for _ in range(4):  # rows that the filter takes come while the sensor waits
            time.sleep(3)
            table.append(ROWS.slice(0, 1))
        table.append(ROWS)

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        run("waiting", _IMPORTS + dag)
        writing.result()
    assert sorted(catalog.load_table("db.t").scan().to_arrow()["id"].to_pylist()) == [1, 1, 1, 1, 1, 2, 2]


def test_a_sensor_fails_at_once_for_an_error_that_will_not_pass(catalog: ice.Catalog) -> None:
    catalog.create_table("db.t", ROWS).append(ROWS)
    dag = """
with DAG("failing", schedule=None):
    IcefieldTableSensor(task_id="wait", table="db.t", filter="nothing = 1", retries=3)
"""
    printed = run("failing", _IMPORTS + dag, succeeds=False)
    assert "nothing" in printed


def test_a_task_that_is_tried_again_after_its_commit_appends_nothing_twice(catalog: ice.Catalog) -> None:
    catalog.create_table("db.t", ROWS)
    dag = """
with DAG("again", schedule=None):

    @task(retries=1, retry_delay=timedelta(0))
    def append(**context):
        hook = IcefieldHook()
        table = hook.load_table("db.t")
        if not hook.is_written(table, context):
            rows = pa.table({"id": [1, 2]})
            table.append(rows, snapshot_properties=hook.marks(context))
            raise RuntimeError("the worker is lost behind its commit")

    append()
"""
    assert "the worker is lost" in run("again", _IMPORTS + dag)
    table = catalog.load_table("db.t")
    assert table.scan().count() == 2
    assert table.current_snapshot().summary.get("airflow.dag-id") == "again"


def test_the_dag_of_the_guide_runs_with_its_connection(
    catalog: ice.Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dag, shell, _ = (block.text for block in Page(Path("docs/guide/airflow.md")).blocks)
    connection = shell.split("'")[1].replace("/data", str(tmp_path))
    monkeypatch.setenv("AIRFLOW_CONN_ICEFIELD_DEFAULT", connection)
    catalog.create_namespace("shop")
    orders = pa.table({"id": [1, 2], "state": ["new", "sent"]})
    catalog.create_table("shop.orders", orders).append(orders)
    run("ship", dag)
    run("ship", dag)
    sent = catalog.load_table("shop.sent")
    assert sent.scan().to_arrow().to_pylist() == [{"id": 2, "state": "sent"}] * 2
    assert sent.current_snapshot().summary.get("airflow.task-id") == "ship"


def test_the_maintenance_of_the_guide_runs_with_its_policy(catalog: ice.Catalog, tmp_path: Path) -> None:
    _, _, dag = (block.text for block in Page(Path("docs/guide/airflow.md")).blocks)
    policy = tmp_path / "policy.toml"
    policy.write_text('record = "ops.tend"\n[[rules]]\ntables = "db.*"\nfiles-per-scan = 2\n')
    table = catalog.create_table("db.t", ROWS)
    for _ in range(4):
        table.append(ROWS)
    run("tend", dag.replace("/data", str(tmp_path)))
    assert table.refresh().inspect.data_files().num_rows == 1
    assert catalog.load_table("ops.tend").scan().to_arrow()["outcome"].to_pylist() == ["done"]
    policy.write_text(policy.read_text() + 'orphan-age = "1s"\n')
    assert "is not from 1d to never" in run("tend", dag.replace("/data", str(tmp_path)), succeeds=False)


def test_the_sensor_of_the_readme_is_made() -> None:
    [block] = (block for block in Page(README).blocks if "icefield_tools.airflow" in block.text)
    made: dict[str, Any] = {}
    exec(block.text, made)
    assert made["wait"].table == "shop.orders"
