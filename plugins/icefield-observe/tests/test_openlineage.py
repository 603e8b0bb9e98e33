"""Runs of real programs, as OpenLineage's client writes and sends them."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pyarrow as pa
import pytest
from icefield.schema import schema_from_arrow
from icefield_observe.openlineage import hooks, queues
from icefield_observe.openlineage.datasets import name_of, schema_fields
from openlineage.client import event_v2
from openlineage.client.serde import Serde

PROGRAM = """
import sys
import pyarrow as pa
from icefield import load_catalog

catalog = load_catalog("lake", type="directory", warehouse=sys.argv[1] + "/lake", **{
    "events.openlineage.url": sys.argv[2],
    "events.openlineage.namespace": "shop",
    "events.openlineage.job": "totals",
    "events.openlineage.catalog-namespace": "https://catalog.example",
    "events.openlineage.parent": "airflow/nightly.totals/0190a9ac-1f0e-7d6c-a7e3-0d5ff6b0c111",
})
catalog.create_namespace("db")
orders = pa.table({"id": [1, 2, 30], "secret": ["a", "b", "c"], "at": [{"x": [1]}] * 3})
catalog.create_table_as("db.orders", orders)
found = catalog.load_table("db.orders").scan("id > 29", selected_fields=["id"]).to_arrow()
totals = catalog.create_table("db.totals", found.schema)
totals.append(found)
totals.set_properties(owner="ann")
"""
FACETS = {
    "schema": ("schema_dataset", "SchemaDatasetFacet"),
    "symlinks": ("symlinks_dataset", "SymlinksDatasetFacet"),
    "storage": ("storage_dataset", "StorageDatasetFacet"),
    "version": ("dataset_version_dataset", "DatasetVersionDatasetFacet"),
    "lifecycleStateChange": ("lifecycle_state_change_dataset", "LifecycleStateChangeDatasetFacet"),
    "inputStatistics": ("input_statistics_input_dataset", "InputStatisticsInputDatasetFacet"),
    "outputStatistics": ("output_statistics_output_dataset", "OutputStatisticsOutputDatasetFacet"),
    "processing_engine": ("processing_engine_run", "ProcessingEngineRunFacet"),
    "parent": ("parent_run", "ParentRunFacet"),
    "errorMessage": ("error_message_run", "ErrorMessageRunFacet"),
    "tags": ("tags_run", "TagsRunFacet"),
    "jobType": ("job_type_job", "JobTypeJobFacet"),
}


def ran(folder: Path, program: str = PROGRAM, *, url: str | None = None, fails: bool = False, **env: str) -> list[Any]:
    """The events of a program that ran in a process of its own."""
    log = folder / "the lineage.jsonl"
    (folder / "nightly.py").write_text(program, "utf-8")
    command = [sys.executable, str(folder / "nightly.py"), folder.as_uri(), url or log.as_uri()]
    done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode != 0) == fails, done.stderr
    return [json.loads(line) for line in log.read_text("utf-8").splitlines()] if log.exists() else []


def check(event: dict[str, Any]) -> None:
    """Fail unless the classes that OpenLineage generates of its JSON schemas accept the event and every facet."""

    def facets(given: dict[str, Any]) -> dict[str, Any]:
        made = {}
        for name, facet in given.items():
            module, kind = FACETS[name]
            of = getattr(import_module(f"openlineage.client.generated.{module}"), kind)
            made[name] = of(**{key.lstrip("_"): value for key, value in facet.items() if key != "_schemaURL"})
        return made

    job, run = event["job"], event["run"]
    same = event_v2.RunEvent(
        eventTime=event["eventTime"],
        eventType=event_v2.RunState(event["eventType"]),
        run=event_v2.Run(run["runId"], facets(run["facets"])),
        job=event_v2.Job(job["namespace"], job["name"], facets(job["facets"])),
        inputs=[
            event_v2.InputDataset(
                one["namespace"], one["name"], facets(one["inputFacets"]), facets=facets(one["facets"])
            )
            for one in event["inputs"]
        ],
        outputs=[
            event_v2.OutputDataset(
                one["namespace"], one["name"], facets(one["outputFacets"]), facets=facets(one["facets"])
            )
            for one in event["outputs"]
        ],
        producer=event["producer"],
    )
    assert json.loads(Serde.to_json(same)) == event


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    return ran(tmp_path_factory.mktemp("lineage"))


def test_the_classes_of_openlineage_accept_every_event(events: list[Any]) -> None:
    for event in events:
        check(event)


def test_a_process_is_one_run_from_its_start_to_its_end(events: list[Any]) -> None:
    states = [event["eventType"] for event in events]
    assert states == ["START", *["RUNNING"] * (len(events) - 2), "COMPLETE"]
    [run] = {event["run"]["runId"] for event in events}
    assert UUID(run).version == 7
    assert {(event["job"]["namespace"], event["job"]["name"]) for event in events} == {("shop", "totals")}
    assert [event["eventTime"] for event in events] == sorted(event["eventTime"] for event in events)


def test_scans_are_inputs_and_commits_are_outputs(events: list[Any]) -> None:
    inputs = [Path(one["name"]).name for event in events for one in event["inputs"]]
    outputs = [Path(one["name"]).name for event in events for one in event["outputs"]]
    assert inputs == ["orders"]
    assert outputs == ["orders", "totals", "totals", "totals"]
    assert {one["namespace"] for event in events for one in event["inputs"] + event["outputs"]} == {"file"}


def test_an_input_states_the_columns_that_were_read_and_never_the_filter(events: list[Any]) -> None:
    [read] = [one for event in events for one in event["inputs"]]
    assert [field["name"] for field in read["facets"]["schema"]["fields"]] == ["id"]
    assert read["inputFacets"]["inputStatistics"]["fileCount"] == 1
    assert "29" not in json.dumps([read["facets"]["schema"], read["inputFacets"]])


def test_an_output_states_its_schema_rows_version_and_catalog(events: list[Any]) -> None:
    first, *_, appended, changed = [one for event in events for one in event["outputs"]]
    assert first["facets"]["schema"]["fields"] == [
        {"name": "id", "type": "long", "fields": []},
        {"name": "secret", "type": "string", "fields": []},
        {
            "name": "at",
            "type": "struct",
            "fields": [{"name": "x", "type": "array", "fields": [{"name": "_element", "type": "long", "fields": []}]}],
        },
    ]
    assert first["facets"]["lifecycleStateChange"]["lifecycleStateChange"] == "CREATE"
    assert first["outputFacets"]["outputStatistics"]["rowCount"] == 3
    assert first["outputFacets"]["outputStatistics"]["size"] > 0
    assert appended["outputFacets"]["outputStatistics"]["fileCount"] == 1
    assert int(appended["facets"]["version"]["datasetVersion"]) > 0
    assert "lifecycleStateChange" not in appended["facets"]
    assert changed["facets"]["lifecycleStateChange"]["lifecycleStateChange"] == "ALTER"
    assert appended["facets"]["symlinks"]["identifiers"] == [
        {"namespace": "https://catalog.example", "name": "db.totals", "type": "TABLE"}
    ]


def test_the_run_of_an_orchestrator_is_the_parent(events: list[Any]) -> None:
    for event in events:
        parent = event["run"]["facets"]["parent"]
        assert (parent["job"]["namespace"], parent["job"]["name"]) == ("airflow", "nightly.totals")
        assert parent["run"]["runId"] == "0190a9ac-1f0e-7d6c-a7e3-0d5ff6b0c111"


def test_an_error_that_ends_the_program_fails_the_run(tmp_path: Path) -> None:
    *_, last = ran(tmp_path, PROGRAM + "\nraise ValueError('no totals')\n", fails=True)
    assert last["eventType"] == "FAIL"
    assert last["run"]["facets"]["errorMessage"]["message"] == "ValueError: no totals"
    check(last)


def test_a_forked_process_is_part_of_the_run(tmp_path: Path) -> None:
    forked = """
import os
child = os.fork()
if not child:
    catalog.load_table("db.orders").append(orders)
    sys.exit()
os.waitpid(child, 0)
"""
    events = ran(tmp_path, PROGRAM + forked)
    assert len({event["run"]["runId"] for event in events}) == 1
    states = [event["eventType"] for event in events]
    assert (states[0], states[-1], states.count("START"), states.count("COMPLETE")) == ("START", "COMPLETE", 1, 1)
    assert [Path(one["name"]).name for event in events for one in event["outputs"]].count("orders") == 2


def test_the_environment_of_the_client_says_where_events_go(tmp_path: Path, receiver: Any) -> None:
    program = """
import sys
from icefield import load_catalog
catalog = load_catalog("lake", type="directory", warehouse=sys.argv[1] + "/lake")
catalog.create_namespace("db")
catalog.create_table_as("db.t", [{"id": 1}])
"""
    parent = "dbt/model/0190a9ac-1f0e-7d6c-a7e3-0d5ff6b0c111"
    before = len(receiver.came)
    ran(tmp_path, program, OPENLINEAGE_URL=receiver.url, OPENLINEAGE_API_KEY="k", OPENLINEAGE_PARENT_ID=parent)
    came = receiver.came[before:]
    assert {headers["authorization"] for _, headers, _ in came} == {"Bearer k"}
    start, created, end = [json.loads(body) for _, _, body in came]
    assert (start["job"]["namespace"], start["job"]["name"]) == ("default", "nightly")
    assert start["run"]["facets"]["parent"]["job"]["name"] == "model"
    assert [one["facets"]["symlinks"]["identifiers"][0]["namespace"] for one in created["outputs"]] == ["lake"]
    assert end["eventType"] == "COMPLETE"


def test_a_service_receives_the_key(tmp_path: Path, receiver: Any) -> None:
    before = len(receiver.came)
    keyed = PROGRAM.replace(
        '"events.openlineage.namespace"', '"events.openlineage.api-key": "k3y", \n    "events.openlineage.namespace"'
    )
    ran(tmp_path, keyed, url=receiver.url)
    assert {(path, headers["authorization"]) for path, headers, _ in receiver.came[before:]} == {
        ("/api/v1/lineage", "Bearer k3y")
    }


def test_a_program_without_a_configuration_does_not_import_the_client(tmp_path: Path) -> None:
    program = """
import sys
from icefield import load_catalog
load_catalog("lake", type="directory", warehouse="memory://program").create_namespace("db")
assert "icefield_observe.openlineage.hooks" in sys.modules
assert "openlineage" not in sys.modules
"""
    assert ran(tmp_path, program) == []


def test_above_the_bound_events_are_dropped_with_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    gate, sent = threading.Event(), []

    def emit(event: Any) -> None:
        gate.wait()
        sent.append(event)

    queue = queues.EventQueue(emit, "slow")
    with caplog.at_level(logging.WARNING):
        for number in range(queues._MOST_WAITING + 100):
            queue.put(lambda number=number: number)
        assert [record.getMessage() for record in caplog.records] == [
            "events of OpenLineage were dropped: more than 500 events wait"
        ]
    gate.set()
    queue.flush()
    assert len(sent) in (queues._MOST_WAITING, queues._MOST_WAITING + 1)  # the thread holds one, once it runs


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({"url": "localhost:5000"}, "is no URL such as http://localhost:5000"),
        ({"url": "file:///tmp/x", "parent": "job/run"}, "'job/run' is no parent of a run"),
        ({"url": "file:///tmp/x", "nmespace": "a"}, "there is no property 'events.openlineage.nmespace'"),
    ],
)
def test_a_wrong_property_warns_once(properties: dict[str, str], said: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            hooks.icefield_events(object(), properties)  # type: ignore[arg-type]
    [line] = [record.getMessage() for record in caplog.records if "events.openlineage" in record.getMessage()]
    assert said in line


def test_a_catalog_turns_the_listener_off(tmp_path: Path) -> None:
    given = {"url": (tmp_path / uuid4().hex).as_uri(), "enabled": "false"}
    hooks.icefield_events(object(), given)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("s3://bucket/lake/db/t", ("s3://bucket", "lake/db/t")),
        ("s3a://bucket/lake/db/t/", ("s3://bucket", "lake/db/t")),
        ("gs://bucket/db/t", ("gs://bucket", "db/t")),
        ("abfss://box@account.dfs.core.windows.net/db/t", ("abfss://box@account.dfs.core.windows.net", "db/t")),
        ("hdfs://namenode:8020/lake/t", ("hdfs://namenode:8020", "/lake/t")),
        ("file:///lake/a%20b", ("file", "/lake/a b")),
        ("/lake/t", ("file", "/lake/t")),
        ("memory://lake/db/t", ("memory://lake", "db/t")),
        (None, ("prod", "db.t")),
    ],
)
def test_a_table_has_the_name_of_its_place_in_a_store(location: str | None, expected: tuple[str, str]) -> None:
    assert name_of(location, "prod", ("db", "t")) == expected


def test_maps_have_fields_of_their_keys_and_values() -> None:
    schema = schema_from_arrow(pa.schema({"m": pa.map_(pa.string(), pa.decimal128(9, 2))}))
    [field] = schema_fields(schema.fields)
    assert field.type == "map"
    assert [(one.name, one.type) for one in field.fields or []] == [("key", "string"), ("value", "decimal(9,2)")]
