"""Spans and metrics of real operations, read from the in-memory exporters of OpenTelemetry's own SDK."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from icefield import Catalog, load_catalog
from icefield.abc import OperationFinished, OperationProgress, OperationStarted
from icefield.errors import CommitFailed, NoSuchTable
from icefield_observe.opentelemetry import hooks, spans
from icefield_observe.opentelemetry.attributes import counts
from icefield_observe.opentelemetry.instruments import Instruments
from opentelemetry import metrics, trace
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv.attributes import db_attributes, error_attributes
from opentelemetry.semconv.metrics.db_metrics import DB_CLIENT_OPERATION_DURATION
from opentelemetry.trace import SpanKind, StatusCode
from tables import meddled

ROWS = pa.table({"id": [1, 2, 3]})
_EXPORTER, _READER = InMemorySpanExporter(), InMemoryMetricReader()


@pytest.fixture(scope="module", autouse=True)
def _providers() -> None:
    """The providers of this process, which can be set once."""
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(_EXPORTER))
    trace.set_tracer_provider(tracers)
    metrics.set_meter_provider(MeterProvider([_READER]))


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    properties = {"uri": f"sqlite:///{tmp_path}/lake.db", "warehouse": f"memory://{uuid4().hex}"}
    with load_catalog("lake", type="sql", **properties) as made:
        made.create_namespace("db")
        _EXPORTER.clear()
        yield made


def ended() -> list[ReadableSpan]:
    """The spans that ended since the last call."""
    found = list(_EXPORTER.get_finished_spans())
    _EXPORTER.clear()
    return found


def named(name: str) -> ReadableSpan:
    """The only span of a name."""
    [found] = [span for span in ended() if span.name == name]
    return found


def measured(name: str, **attributes: object) -> list[Any]:
    """The points of a metric with these attributes, whose names have underscores for dots."""
    wanted = {key.replace("__", "."): value for key, value in attributes.items()}
    data = _READER.get_metrics_data()
    metrics = [one for of in data.resource_metrics for scope in of.scope_metrics for one in scope.metrics]
    return [
        point
        for one in metrics
        if one.name == name
        for point in one.data.data_points
        if wanted.items() <= dict(point.attributes).items()
    ]


def test_an_event_within_an_event_does_not_wait_for_itself(catalog: Catalog) -> None:
    """Python may run a finalizer anywhere: that of the plan of a scan tells an event."""
    inner, outer = (OperationStarted(operation=each, name=("db",), id=each) for each in ("inner", "outer"))

    left = [OperationFinished(operation="inner", name=("db",), id="inner", seconds=0.0)]

    class Finalizing(str):
        """An id: the first use as a key, which is under the lock, runs a finalizer."""

        def __hash__(self) -> int:
            if left:
                found.hear(left.pop())
            return super().__hash__()

    found = spans.OperationSpans(trace.get_tracer("test"), Instruments(metrics.get_meter("test")))
    found.hear(inner)
    thread = Thread(target=found.hear, args=(replace(outer, id=Finalizing("outer")),), daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    assert [span.name for span in ended()] == ["inner db"]


def test_every_operation_is_a_span_by_the_conventions_for_databases(catalog: Catalog) -> None:
    catalog.create_namespace("other")
    catalog.create_table("db.t", ROWS.schema)
    catalog.rename_table("db.t", "db.u")
    catalog.load_table("db.u").append(ROWS)
    catalog.load_table("db.u").scan().to_arrow()
    catalog.drop_table("db.u")
    catalog.create_view("db.v", ROWS.schema, {"spark": "SELECT 1 AS id"})
    catalog.load_view("db.v").set_properties({"owner": "s3cret"})
    catalog.rename_view("db.v", "db.w")
    catalog.drop_view("db.w")
    catalog.update_namespace_properties("other", updates={"owner": "s3cret"})
    catalog.drop_namespace("other")
    found = {span.name: dict(span.attributes or {}) for span in ended()}
    assert set(found) == {
        "create-namespace other",
        "create-table db.t",
        "rename-table db.t",
        "load-table db.u",
        "commit db.u",
        "plan-scan db.u",
        "drop-table db.u",
        "create-view db.v",
        "load-view db.v",
        "load-view db.w",
        "commit-view db.v",
        "rename-view db.v",
        "drop-view db.w",
        "update-namespace other",
        "drop-namespace other",
    }
    for name, attributes in found.items():
        operation, _, of = name.partition(" ")
        assert attributes[db_attributes.DB_SYSTEM_NAME] == "iceberg"
        assert attributes[db_attributes.DB_OPERATION_NAME] == operation
        assert attributes[db_attributes.DB_NAMESPACE] == ("lake|other" if of == "other" else "lake|db")
        assert attributes.get(db_attributes.DB_COLLECTION_NAME) == (None if of == "other" else of[3:])
    assert found["rename-table db.t"]["icefield.new_name"] == "db.u"
    assert "s3cret" not in str(found)


def test_operations_are_spans_of_clients_that_took_time(catalog: Catalog) -> None:
    catalog.create_table("db.t", ROWS.schema)
    for span in ended():
        assert span.kind is SpanKind.CLIENT
        assert span.start_time is not None
        assert span.end_time is not None
        assert span.end_time > span.start_time
        assert span.status.status_code is StatusCode.UNSET


def test_a_commit_states_its_rows_bytes_and_snapshot(catalog: Catalog) -> None:
    table = catalog.create_table("db.t", ROWS.schema)
    ended()
    written = table.append(ROWS)
    attributes = dict(named("commit db.t").attributes or {})
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert attributes["icefield.snapshot.id"] == written.snapshot_id == snapshot.snapshot_id
    assert attributes["icefield.snapshot.operation"] == "append"
    assert attributes["icefield.rows.added"] == 3
    assert attributes["icefield.files.added"] == 1
    assert attributes["icefield.bytes.written"] == int(snapshot.summary["added-files-size"])
    assert attributes["icefield.commit.attempts"] == 1
    assert attributes["icefield.table.uuid"] == str(table.metadata.table_uuid)


def test_a_scan_states_files_and_never_its_filter(catalog: Catalog) -> None:
    table = catalog.create_table("db.t", ROWS.schema)
    table.append(ROWS)
    table.append(pa.table({"id": [10]}))
    ended()
    table.scan("id > 5").to_arrow()
    span = named("plan-scan db.t")
    attributes = dict(span.attributes or {})
    assert (attributes["icefield.scan.files.planned"], attributes["icefield.scan.files.skipped"]) == (1, 1)
    assert "5" not in {str(value) for value in attributes.values()}


def test_operations_are_parts_of_the_program_s_span_and_of_each_other(catalog: Catalog) -> None:
    table = catalog.create_table("db.t", ROWS.schema)
    for _ in range(2):
        table.append(ROWS)
    ended()
    with trace.get_tracer("program").start_as_current_span("nightly") as program:
        table.maintenance.rewrite_data_files(min_input_files=2)
        table.scan().to_arrow()
        assert trace.get_current_span() is program
    found = {span.name: span for span in ended()}
    rewrite = found["rewrite-data-files db.t"]
    assert rewrite.parent is not None
    assert rewrite.parent.span_id == program.get_span_context().span_id
    commit = found["commit db.t"]
    assert commit.parent is not None
    assert commit.parent.span_id == rewrite.context.span_id
    assert {span.context.trace_id for span in found.values()} == {program.get_span_context().trace_id}


def test_spans_of_the_program_within_an_operation_are_parts_of_it(catalog: Catalog) -> None:
    fact: dict[str, Any] = {"operation": "load-table", "name": ("db", "t"), "id": uuid4().hex}
    hooks.icefield_events(OperationStarted(**fact), {})
    with trace.get_tracer("program").start_as_current_span("request"):
        pass
    hooks.icefield_events(OperationFinished(**fact), {})
    found = {span.name: span for span in ended()}
    assert found["request"].parent == found["load-table db.t"].context
    assert not trace.get_current_span().is_recording()


def test_a_failure_states_its_error(catalog: Catalog) -> None:
    with pytest.raises(NoSuchTable):
        catalog.load_table("db.missing")
    span = named("load-table db.missing")
    assert span.status.status_code is StatusCode.ERROR
    assert "missing" in (span.status.description or "")
    assert dict(span.attributes or {})[error_attributes.ERROR_TYPE].endswith("NoSuchTable")
    [point] = measured(DB_CLIENT_OPERATION_DURATION, db__collection__name="missing")
    assert point.attributes[error_attributes.ERROR_TYPE].endswith("NoSuchTable")


def test_lost_attempts_are_retries_and_events_of_the_commit(catalog: Catalog) -> None:
    name = f"r{uuid4().hex}"
    first = catalog.create_table(f"db.{name}", ROWS.schema)
    ended()
    meddled(first, lambda other: other.append(ROWS)).append(ROWS)
    span = named(f"commit db.{name}")
    assert dict(span.attributes or {})["icefield.commit.attempts"] == 2
    assert [event.name for event in span.events] == ["icefield.commit.conflict"]
    [point] = measured("icefield.commit.retries", db__collection__name=name)
    assert point.value == 1


def test_metrics_sum_rows_files_and_bytes(catalog: Catalog) -> None:
    name = f"m{uuid4().hex}"
    table = catalog.create_table(f"db.{name}", ROWS.schema)
    results = [table.append(ROWS) for _ in range(2)]
    table.delete("id >= 0")
    table.scan().to_arrow()
    sums = {
        one: [point.value for point in measured(one, db__collection__name=name)]
        for one in (
            "icefield.rows.added",
            "icefield.rows.deleted",
            "icefield.files.added",
            "icefield.files.deleted",
            "icefield.commit.retries",
            "icefield.scan.files.planned",
        )
    }
    assert len(results) == 2
    assert sums["icefield.rows.added"] == [6]
    assert sums["icefield.rows.deleted"] == [6]
    assert sums["icefield.files.added"] == [2]
    assert sums["icefield.files.deleted"] == [2]
    assert sums["icefield.commit.retries"] == [0]
    [written] = measured("icefield.bytes.written", db__collection__name=name)
    sizes = [table.metadata.snapshot_by_id(result.snapshot_id).summary["added-files-size"] for result in results]
    assert written.value == sum(map(int, sizes))
    [commits] = measured(DB_CLIENT_OPERATION_DURATION, db__collection__name=name, db__operation__name="commit")
    assert commits.count == 3
    assert 0 < commits.sum < 100


def test_threads_do_not_mix_their_commits(catalog: Catalog) -> None:
    names = [f"t{number}" for number in range(4)]
    for name in names:
        catalog.create_table(f"db.{name}", ROWS.schema)
    ended()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda name: catalog.load_table(f"db.{name}").append(ROWS), names))
    commits = [span for span in ended() if span.name.startswith("commit")]
    assert sorted(span.name for span in commits) == [f"commit db.{name}" for name in names]
    assert all(dict(span.attributes or {})["icefield.rows.added"] == 3 for span in commits)
    assert len({span.context.trace_id for span in commits}) == 4


def test_a_commit_of_several_tables_is_a_span_for_each(catalog: Catalog) -> None:
    fact: dict[str, Any] = {"operation": "commit"}
    for name in ("a", "b"):
        hooks.icefield_events(OperationStarted(name=("db", name), id=name, **fact), {})
    for name in ("b", "a"):
        hooks.icefield_events(OperationFinished(name=("db", name), id=name, **fact), {})
    assert [span.name for span in ended()] == ["commit db.b", "commit db.a"]
    assert not trace.get_current_span().is_recording()


def test_progress_of_maintenance_is_on_its_span(catalog: Catalog) -> None:
    fact: dict[str, Any] = {"operation": "expire-snapshots", "name": ("db", "t"), "id": uuid4().hex}
    hooks.icefield_events(OperationStarted(**fact), {})
    hooks.icefield_events(OperationProgress(("db", "t"), "expire-snapshots", "data files", 7, None), {})
    hooks.icefield_events(OperationFinished(**fact), {})
    attributes = dict(named("expire-snapshots db.t").attributes or {})
    assert attributes["icefield.progress.data_files"] == 7


def test_spans_whose_end_was_lost_are_bounded(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spans, "_MOST_OPEN", 3)
    for number in range(5):
        hooks.icefield_events(OperationStarted("plan-scan", ("db", "t"), f"lost-{number}"), {})
    assert len(ended()) == 2


def test_numbers_of_a_summary_that_are_no_numbers_are_left_out() -> None:
    summary = {"added-records": "²", "deleted-records": "-1", "added-data-files": "9" * 30, "added-files-size": "7"}
    assert counts(summary) == {"icefield.bytes.written": 7}


def test_a_catalog_turns_the_listener_off(catalog: Catalog) -> None:
    properties = {"events.opentelemetry.enabled": "false"}
    with load_catalog("off", type="directory", warehouse=f"memory://{uuid4().hex}", **properties) as off:
        off.create_namespace("db")
    assert ended() == []


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({"endpoit": "http://localhost"}, "there is no property 'events.opentelemetry.endpoit'"),
        ({"enabled": "perhaps"}, "'events.opentelemetry.enabled' is true or false, not 'perhaps'"),
        ({"endpoint": "localhost:4318"}, "is no URL such as http://localhost:4318"),
        ({"endpoint": "http://localhost", "headers": "s3cret"}, "has no pairs such as a=1,b=2"),
    ],
)
def test_a_wrong_property_warns_once(properties: dict[str, str], said: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            hooks.icefield_events(OperationFinished("load-table", ("db", "t"), "id"), properties)
    [line] = [record.getMessage() for record in caplog.records if "events.opentelemetry" in record.getMessage()]
    assert said in line
    assert "s3cret" not in line


def test_a_collector_receives_spans_and_metrics_when_the_program_ends(receiver: Any) -> None:
    program = f"""
from icefield import load_catalog
catalog = load_catalog("lake", type="directory", warehouse="memory://program", **{{
    "events.opentelemetry.endpoint": "{receiver.url}/",
    "events.opentelemetry.headers": "api-key=s3cret, team=a",
    "events.opentelemetry.service-name": "nightly",
}})
catalog.create_namespace("db")
catalog.create_table_as("db.t", [{{"id": 1}}])
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
    sent = [ExportTraceServiceRequest.FromString(body) for body in receiver.bodies("/v1/traces")]
    resources = [resource for each in sent for resource in each.resource_spans]
    assert {"create-namespace db", "create-table db.t"} <= {
        span.name for resource in resources for scope in resource.scope_spans for span in scope.spans
    }
    named = [each.value.string_value for each in resources[0].resource.attributes if each.key == "service.name"]
    assert named == ["nightly"]
    metrics = [ExportMetricsServiceRequest.FromString(body) for body in receiver.bodies("/v1/metrics")]
    names = {
        one.name
        for each in metrics
        for of in each.resource_metrics
        for scope in of.scope_metrics
        for one in scope.metrics
    }
    assert {"db.client.operation.duration", "icefield.rows.added"} <= names
    headers = [headers for _, headers, _ in receiver.came]
    assert all(one["api-key"] == "s3cret" and one["team"] == "a" for one in headers)


def test_a_program_without_opentelemetry_does_not_import_it() -> None:
    program = """
import sys
from icefield import load_catalog
load_catalog("lake", type="directory", warehouse="memory://program").create_namespace("db")
print(sorted(name for name in sys.modules if name.startswith(("opentelemetry", "icefield_observe"))))
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=60)
    assert "'opentelemetry" not in done.stdout
    assert "'icefield_observe.opentelemetry.hooks'" in done.stdout


def test_a_collector_without_the_library_is_said_once() -> None:
    program = """
import sys
sys.modules["opentelemetry"] = None
from icefield import load_catalog
catalog = load_catalog(
    "lake", type="directory", warehouse="memory://program",
    **{"events.opentelemetry.endpoint": "http://127.0.0.1:9"},
)
catalog.create_namespace("db")
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=60)
    assert done.stderr.count("pip install 'icefield-observe[opentelemetry]'") == 1


def test_a_failed_commit_is_a_failed_span(catalog: Catalog) -> None:
    table = catalog.create_table("db.t", ROWS.schema, properties={"commit.retry.num-retries": "0"})
    ended()
    holder = meddled(table, lambda other: other.append(ROWS))
    with pytest.raises(CommitFailed):
        holder.append(ROWS)
    span = named("commit db.t")
    assert span.status.status_code is StatusCode.ERROR
    assert [event.name for event in span.events] == ["icefield.commit.conflict"]
