"""What every test shares: counts of the property tests, and the switches for slow runs."""

from __future__ import annotations

import ctypes
import gc
import inspect
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import java_classes
import pyarrow as pa
import pytest
import shares
from hypothesis import HealthCheck, settings

settings.register_profile(
    "default", max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
settings.register_profile("soak", max_examples=2_000, deadline=None, suppress_health_check=list(HealthCheck))
SOAK = bool(os.environ.get("ICEFIELD_SOAK"))
settings.load_profile("soak" if SOAK else "default")
# A property test has the number of examples of its long run written at it; elsewhere it draws a third of them.
_SHARE, _FEWEST = 3, 10

# For every program in Java that tests start; whoever starts one may say otherwise on its command line.
os.environ.setdefault("JDK_JAVA_OPTIONS", f"{java_classes.QUICK} {java_classes.using(java_classes.of_pyspark())}")

# Each module of tests/support/servers brings the fixtures of one server.
_SERVERS = sorted(path.stem for path in (Path(__file__).parent / "tests/support/servers").glob("[a-z]*.py"))
pytest_plugins = [f"servers.{name}" for name in _SERVERS if name != "process"]

# The fixture of a server is named as its module. Iceberg's Java library, and its runtime for Spark, are peers in
# processes of their own.
_PEER_FIXTURES = {"java_iceberg", "spark_runtime", "stock_spark", "duck", "click"}
_SERVER_FIXTURES = set(_SERVERS) - _PEER_FIXTURES
_SPARK_FIXTURES = {"spark", "spark_session", "spark_runtime", "stock_spark"}
_PEERS = f"{Path(__file__).parent / 'tests/interop'}{os.sep}"


@pytest.fixture(autouse=True)
def environment_as_before() -> Iterator[None]:
    """What a test, or a page that it runs, leaves in the environment reaches no other test of the process."""
    before = dict(os.environ)
    yield
    for name in os.environ.keys() - before.keys():
        del os.environ[name]
    os.environ.update({name: value for name, value in before.items() if os.environ.get(name) != value})


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--run-packaging", action="store_true", help="build wheels and install them")
    parser.addoption("--run-soak", action="store_true", help="run what only `make soak` runs")
    parser.addoption(
        "--share", type=shares.parsed, metavar="K/N", help="run share K, from 0 on, of N shares of the tests"
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """The tests live as long as the process: its garbage collector need not look at them again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        _give_back_memory()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    if nextitem is None or nextitem.path != item.path:
        _give_back_memory()


def _give_back_memory() -> None:
    """Hand what is free back to the system: Arrow and malloc keep up to gigabytes of it in each process of a run."""
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None  # only glibc has it
    if trim is not None:
        trim(0)


@pytest.hookimpl(wrapper=True, tryfirst=True)  # before `-m` looks at the markers
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    for item in items:
        for marker in _needs(item):
            item.add_marker(marker)
        if _is_counted(getattr(item, "function", None)):
            item.add_marker("counted")
    if not SOAK:
        _draw_fewer_examples(items)
    for marker, option in (("packaging", "--run-packaging"), ("soak", "--run-soak")):
        if not config.getoption(option):
            skip = pytest.mark.skip(reason=f"runs with {option}")
            for item in items:
                if item.get_closest_marker(marker):
                    item.add_marker(skip)
    yield
    if share := config.getoption("--share"):
        chosen = shares.of_share(items, *share)
        config.hook.pytest_deselected(items=[item for item, taken in zip(items, chosen, strict=True) if not taken])
        items[:] = [item for item, taken in zip(items, chosen, strict=True) if taken]
    _put_spark_in_lanes(items, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))


def _put_spark_in_lanes(items: list[pytest.Item], workers: int) -> None:
    """Put tests of Spark where one worker begins with those of a session, and another with those of other processes.

    Each worker that meets a test starts the session or the process that the test needs, and at first the workers get
    equal shares of the items in their order.
    """
    spark = [item for item in items if item.get_closest_marker("spark")]
    session = [item for item in spark if "spark" in getattr(item, "fixturenames", ())]
    others = [item for item in spark if "spark" not in getattr(item, "fixturenames", ())]
    rest = [item for item in items if not item.get_closest_marker("spark")]
    before = max(0, len(items) // workers - len(session)) if workers > 2 else 0
    items[:] = [*session, *rest[:before], *others, *rest[before:]]


def _is_counted(test: Any) -> bool:
    """Whether a soak gives a test another count by itself: a property, or a check of the kit, which has no markers."""
    if getattr(test, "is_hypothesis_test", False):
        return True
    code = getattr(inspect.unwrap(test), "__code__", None) if callable(test) else None
    return code is not None and test.__module__.startswith("icefield_testing.") and "SOAK" in code.co_names


def _draw_fewer_examples(items: list[pytest.Item]) -> None:
    """Lower the counts of property tests; several items may share one function."""
    tests = {getattr(item, "function", None) for item in items}
    for test in tests:
        if getattr(test, "is_hypothesis_test", False):
            full: settings = test._hypothesis_internal_use_settings
            fewer = max(min(full.max_examples, _FEWEST), full.max_examples // _SHARE)
            test._hypothesis_internal_use_settings = settings(full, max_examples=fewer)


def _needs(item: pytest.Item) -> set[str]:
    """The markers that say what a test needs, by the fixtures that it has or is to ask for."""
    fixtures = set(getattr(item, "fixturenames", ()))
    parameters = getattr(item, "callspec", None)
    if parameters is not None and "request" in fixtures:  # it may ask for the fixture that a parameter names
        fixtures |= {value for value in parameters.params.values() if isinstance(value, str)}
    needs = {"server"} if fixtures & _SERVER_FIXTURES else set()
    if fixtures & _PEER_FIXTURES or str(item.path).startswith(_PEERS):
        needs.add("peer")
    if fixtures & _SPARK_FIXTURES:
        needs.add("spark")
    return needs
