"""Table properties: one declaration each, typed values, nothing that must not be stored."""

import pickle
import re
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from icefield import Plugins
from icefield.errors import InvalidArgument
from icefield.metadata import properties as p
from icefield_orc.properties import ORC_BLOOM_FILTER_FPP
from icefield_parquet.properties import PARQUET_BLOOM_FILTER_ENABLED

DECLARED = {
    each.name: each for each in (*p.TABLE_PROPERTIES.values(), *Plugins.installed().table_properties.of_plugins)
}
"""The properties of the kernel and of the installed plugins."""


@pytest.mark.parametrize("declared", DECLARED.values(), ids=lambda declared: declared.name)
def test_every_property_says_what_it_is_and_has_a_default_of_its_type(declared):
    assert declared.type in (str, int, float, bool)
    assert declared.doc.endswith(".")
    assert declared.per_column == declared.name.endswith(".")
    if declared.default is not None:
        assert type(declared.default) is declared.type
        text = str(declared.default).lower() if declared.type is bool else str(declared.default)
        assert declared.parse(text) == declared.default
        assert p.find_value({}, declared) == declared.default


@pytest.mark.spec("COMMIT-06", "REF-05", "META-19", "META-36", "META-38")
@pytest.mark.parametrize(
    ("name", "default"),
    [
        ("commit.retry.num-retries", 4),
        ("commit.retry.min-wait-ms", 100),
        ("commit.retry.max-wait-ms", 60_000),
        ("commit.retry.total-timeout-ms", 1_800_000),
        ("commit.manifest.target-size-bytes", 8 * 2**20),
        ("commit.manifest.min-count-to-merge", 100),
        ("commit.manifest-merge.enabled", True),
        ("write.format.default", "parquet"),
        ("write.target-file-size-bytes", 512 * 2**20),
        ("write.metadata.previous-versions-max", 100),
        ("write.metadata.delete-after-commit.enabled", False),
        ("write.metadata.compression-codec", "none"),
        ("write.metadata.metrics.default", "truncate(16)"),
        ("read.split.target-size", 128 * 2**20),
        ("read.split.open-file-cost", 4 * 2**20),
        ("read.split.planning-lookback", 10),
        ("history.expire.max-snapshot-age-ms", 432_000_000),
        ("history.expire.min-snapshots-to-keep", 1),
        ("history.expire.max-ref-age-ms", 2**63 - 1),
        ("gc.enabled", True),
        ("format-version", 2),
    ],
)
def test_defaults_are_those_that_users_know(name, default):
    assert p.TABLE_PROPERTIES[name].default == default


def test_values_are_typed():
    properties = {"commit.retry.num-retries": " 7 ", "gc.enabled": "FALSE", "write.orc.bloom.filter.fpp": "0.5"}
    assert p.get_int(properties, p.COMMIT_RETRY_NUM_RETRIES) == 7
    assert p.get_bool(properties, p.GC_ENABLED) is False
    assert p.get_float(properties, ORC_BLOOM_FILTER_FPP) == 0.5
    assert p.get_str(properties, p.WRITE_FORMAT_DEFAULT) == "parquet"
    assert p.get_bool({}, p.GC_ENABLED) is True
    assert p.find_value({}, p.WRITE_DATA_PATH) is None
    with pytest.raises(InvalidArgument, match=r"write\.data\.path.*not set"):
        p.get_str({}, p.WRITE_DATA_PATH)


def test_properties_of_one_column_are_found_by_its_name():
    properties = {"write.metadata.metrics.column.a.b": "full", "write.parquet.bloom-filter-enabled.column.x": "true"}
    assert p.get_bool(properties, PARQUET_BLOOM_FILTER_ENABLED, "x") is True
    assert p.get_bool(properties, PARQUET_BLOOM_FILTER_ENABLED, "y") is False
    assert p.find_property("write.metadata.metrics.column.a.b") is p.METRICS_COLUMN
    assert p.find_property("gc.enabled") is p.GC_ENABLED
    assert p.find_property("mine") is None


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("commit.retry.num-retries", "many"),
        ("commit.retry.num-retries", "-1"),
        ("commit.retry.num-retries", "1.5"),
        ("commit.retry.num-retries", ""),
        ("commit.retry.num-retries", "9" * 5_000),
        ("write.target-file-size-bytes", str(2**63)),
        ("gc.enabled", "yes"),
        ("write.delete.mode", "maybe"),
        ("write.metadata.compression-codec", "zip"),
        ("write.orc.bloom.filter.fpp", "half"),
    ],
)
def test_a_value_of_the_wrong_form_is_refused_with_its_name(name, wrong):
    with pytest.raises(InvalidArgument, match=name) as caught:
        Plugins.installed().table_properties.check({name: wrong})
    assert caught.value.property == name
    assert len(str(caught.value)) < 250
    with pytest.raises(InvalidArgument, match=name):
        p.find_value({name: wrong}, DECLARED[name])


@pytest.mark.spec("META-13")
def test_state_and_credentials_are_no_properties_and_never_shown():
    for name in ("uuid", "current-snapshot-id", "snapshot-count"):
        with pytest.raises(InvalidArgument, match="reserved"):
            p.check_properties({name: "x"})
    for name in ("s3.secret-access-key", "adls.account-key", "s3.session-token", "hive.Password"):
        with pytest.raises(InvalidArgument, match="credential") as caught:
            p.check_properties({name: "hunter2"})
        assert "hunter2" not in str(caught.value)
    assert p.check_properties({"owner": "me", "mine.token-count": "3"}) == {"owner": "me", "mine.token-count": "3"}


@given(st.dictionaries(st.text(), st.text(), max_size=5))
def test_a_frozen_dict_is_equal_to_a_dict_and_never_changes(content):
    frozen = p.FrozenDict(content)
    assert frozen == content
    assert pickle.loads(pickle.dumps(frozen)) == frozen
    assert type(pickle.loads(pickle.dumps(frozen))) is p.FrozenDict
    assert hash(frozen) == hash(p.FrozenDict(reversed(content.items())))
    for change in (
        lambda: frozen.update(a="b"),
        lambda: frozen.setdefault("a", "b"),
        lambda: frozen.pop("a", None),
        lambda: frozen.popitem(),
        lambda: frozen.clear(),
        lambda: frozen.__setitem__("a", "b"),
        lambda: frozen.__delitem__("a"),
        lambda: frozen.__ior__({"a": "b"}),
    ):
        with pytest.raises(TypeError, match="copy"):
            change()
    assert frozen == content


ROOT = Path(__file__).parents[3]
SOURCES = "\n".join(
    path.read_text("utf-8")
    for folder in (ROOT / "framework/src", *sorted((ROOT / "plugins").glob("*/src")))
    for path in folder.rglob("*.py")
    if path.name not in ("properties.py", "property_checks.py")  # they declare them, and check values
)
WORDS = frozenset(re.findall(r"\w+", SOURCES))
MODULES = [p, *(import_module(f"{path.parent.name}.properties") for path in ROOT.glob("plugins/*/src/*/properties.py"))]
CONSTANTS = {
    value.name: name for each in MODULES for name, value in vars(each).items() if isinstance(value, p.Property)
}


@pytest.mark.parametrize("name", DECLARED)
def test_the_reference_claims_an_effect_of_a_property_when_and_only_when_something_reads_it(name):
    is_read = CONSTANTS[name] in WORDS or f'"{name}"' in SOURCES
    assert DECLARED[name].unread is not is_read
