"""A plan of 100,000 files through the REST server, against the same plan in the process: CPU time of all that is done.

The server runs in a thread of this process, and a client asks for all answers and decodes their JSON: the clock counts
both. In the process the plan's tasks are drawn, with the file of each; so they are through Icefield's own client.

    python benchmarks/bench_rest_plans.py [--manifests 100] [--files 1000] [--runs 5]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import msgspec
import uvicorn
from harness import cold, compare, main
from icefield import Catalog, Table, load_catalog
from icefield_rest_server import app
from make_table import make_table

PLAN = "/v1/namespaces/db/tables/t"


@contextmanager
def served(catalog: Catalog) -> Iterator[httpx.Client]:
    """A client of a server of the catalog."""
    server = uvicorn.Server(uvicorn.Config(app(catalog), port=0, log_level="warning", access_log=False))
    thread = Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=300) as client:
            yield client
    finally:
        server.should_exit = True
        thread.join()


def through(client: httpx.Client, body: dict[str, Any]) -> int:
    """All answers of a plan, decoded; how many files they name."""
    page = msgspec.json.decode(client.post(f"{PLAN}/plan", json=body).content)
    count = len(page["file-scan-tasks"])
    while waiting := page.get("plan-tasks"):
        page = msgspec.json.decode(client.post(f"{PLAN}/tasks", json={"plan-task": waiting[0]}).content)
        count += len(page["file-scan-tasks"])
    return count


def run() -> None:
    """Plans of all files and of some, with nothing decoded beforehand and again, and with statistics."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--manifests", type=int, default=100)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    name = f"icefield-bench-planning/java-{given.manifests}-{given.files}"
    path = make_table(Path(tempfile.gettempdir()) / name, given.manifests, given.files, 20, "java")
    with (
        tempfile.TemporaryDirectory() as folder,
        load_catalog("served", type="sql", uri=f"sqlite:///{folder}/c.db", warehouse=f"file://{folder}/w") as catalog,
        served(catalog) as client,
    ):
        catalog.create_namespace("db")
        table = catalog.register_table("db.t", f"file://{path}")

        def files(of: Table = table) -> int:
            return sum(1 for task in of.scan().plan_files() if task.file.file_path)

        count = given.manifests * given.files
        assert files() == through(client, {}) == count
        every = f"a plan of {count:,} files"
        clock = time.process_time
        compare(every, cold(lambda: through(client, {})), cold(files), runs=given.runs, floor=0.5, clock=clock)
        compare(f"{every}, again", lambda: through(client, {}), files, runs=given.runs, clock=clock)
        rest = load_catalog("client", type="rest", uri=str(client.base_url), **{"scan-planning-mode": "server"})
        with rest:
            listed = rest.load_table("db.t")
            assert files(listed) == count
            own = f"{every}, Icefield's client"
            compare(own, cold(lambda: files(listed)), cold(files), runs=given.runs, floor=0.4, clock=clock)


if __name__ == "__main__":
    main(run)
