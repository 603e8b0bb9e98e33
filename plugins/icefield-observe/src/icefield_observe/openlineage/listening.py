"""The listener: it sends the runs of one configuration."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import url2pathname

from icefield.errors import InvalidArgument
from openlineage.client import OpenLineageClient
from openlineage.client.uuid import generate_new_uuid

from icefield_observe.openlineage.runs import Parent, RunOfProcess
from icefield_observe.properties import is_enabled

_NAMES: Final = ("url", "api-key", "namespace", "job", "catalog-namespace", "parent")

_RUN_IDS: Final[dict[frozenset[tuple[str, str]], tuple[str, int]]] = {}
"""The id of the run of each configuration, and the process that began it. Forked processes are part of the run."""


def listener(properties: Mapping[str, str]) -> RunOfProcess | None:
    """The listener of a configuration; None if it is turned off."""
    if not is_enabled("openlineage", properties, _NAMES):
        return None
    client = OpenLineageClient(config=_config(properties)) if "url" in properties else OpenLineageClient()
    new = (str(generate_new_uuid()), os.getpid())
    run_id, owner = _RUN_IDS.setdefault(frozenset(properties.items()), new)
    return RunOfProcess(
        client.emit,
        run_id,
        namespace=properties.get("namespace") or os.environ.get("OPENLINEAGE_NAMESPACE") or "default",
        job=properties.get("job") or Path(sys.argv[0] or "icefield").stem,
        catalog_namespace=properties.get("catalog-namespace"),
        parent=_parent(properties.get("parent") or os.environ.get("OPENLINEAGE_PARENT_ID")),
        is_owner=owner == os.getpid(),
    )


def _config(properties: Mapping[str, str]) -> dict[str, Any]:
    """The configuration of the client. Nothing is tried twice: the events behind it would wait."""
    url = properties["url"]
    if url.startswith("file://"):
        return {"transport": {"type": "file", "log_file_path": url2pathname(urlsplit(url).path), "append": True}}
    if not url.startswith(("http://", "https://")):
        raise InvalidArgument("'events.openlineage.url' is no URL such as http://localhost:5000 or file:///tmp/lineage")
    transport: dict[str, Any] = {"type": "http", "url": url, "retry": {"total": 0}}
    if "api-key" in properties:
        transport["auth"] = {"type": "api_key", "apiKey": properties["api-key"]}
    return {"transport": transport}


def _parent(text: str | None) -> Parent | None:
    """The run of an orchestrator: ``namespace/job/run id``, as its integrations write it."""
    if not text:
        return None
    rest, _, run_id = text.rpartition("/")
    namespace, _, job = rest.rpartition("/")
    if not (namespace and job and run_id):
        raise InvalidArgument(f"'{text}' is no parent of a run, such as namespace/job/run id")
    return Parent(namespace, job, run_id)
