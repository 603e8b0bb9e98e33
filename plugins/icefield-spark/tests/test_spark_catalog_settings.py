"""Catalogs that the settings of a session name, with the properties of Iceberg's Java catalogs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from icefield.errors import InvalidArgument
from icefield_spark import install
from icefield_spark.catalog.java_properties import translated

_PREFIX = "spark.sql.catalog.mine"


@pytest.fixture
def settings(spark: Any) -> Iterator[dict[str, str]]:
    """Settings to make, which are taken back after the test."""
    made: dict[str, str] = {}
    yield made
    for name in [*made, f"{_PREFIX}.key"]:
        spark.conf.unset(name)
        spark._jsparkSession.sharedState().conf().remove(name)


@pytest.mark.spark
@pytest.mark.slow
def test_a_job_of_javas_runtime_needs_one_line_more(spark: Any, settings: dict[str, str], tmp_path: Path) -> None:
    settings |= {
        _PREFIX: "icefield",
        f"{_PREFIX}.type": "hadoop",
        f"{_PREFIX}.warehouse": f"file://{tmp_path}",
        f"{_PREFIX}.default-namespace": "db",
        f"{_PREFIX}.cache-enabled": "false",
        f"{_PREFIX}.table-default.write.format.default": "orc",
    }
    for name, value in settings.items():
        spark.conf.set(name, value)
    with pytest.raises(InvalidArgument, match="there is no catalog to attach"):
        install(spark.newSession())  # whose settings are its own
    assert list(install(spark)) == ["mine"]
    spark.sql("CREATE NAMESPACE mine.db")
    spark.sql("CREATE TABLE mine.db.t AS SELECT 1 AS id")
    spark.sql("USE mine")
    assert spark.table("t").count() == 1  # the default namespace
    spark.sql("USE spark_catalog.default")
    assert (tmp_path / "db" / "t" / "metadata").is_dir()
    assert list((tmp_path / "db" / "t" / "data").glob("*.orc"))
    assert spark.newSession().table("mine.db.t").count() == 1


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"type": "hive", "uri": "thrift://h:9083"}, {"type": "hive", "uri": "thrift://h:9083"}),
        ({"type": "rest", "credential": "a:b"}, {"type": "rest", "credential": "a:b"}),
        ({"catalog-impl": "org.apache.iceberg.rest.RESTCatalog"}, {"type": "rest"}),
        ({"type": "hadoop", "warehouse": "s3://w", "io-impl": "x"}, {"type": "directory", "warehouse": "s3://w"}),
        ({"type": "jdbc", "uri": "jdbc:sqlite:/c.db"}, {"type": "sql", "uri": "sqlite:////c.db"}),
        ({"uri": "jdbc:postgresql://h:1/d"}, {"uri": "postgresql+psycopg://h:1/d"}),
        (
            {"uri": "jdbc:postgresql://h/d", "jdbc.user": "u@x", "jdbc.password": "p/w"},
            {"uri": "postgresql+psycopg://u%40x:p%2Fw@h/d"},
        ),
        ({"cache-enabled": "true", "cache.expiration-interval-ms": "1", "s3.endpoint": "e"}, {"s3.endpoint": "e"}),
    ],
)
def test_properties_of_javas_catalogs_are_translated(given: dict[str, str], expected: dict[str, str]) -> None:
    assert translated("c", given) == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"catalog-impl": "software.amazon.s3tables.iceberg.S3TablesCatalog"},
            "no software.amazon.s3tables.iceberg.S3TablesCatalog",
        ),
        ({"catalog-impl": "org.apache.iceberg.rest.RESTCatalog", "type": "rest"}, "not both"),
        ({"uri": "jdbc:mysql://h/d", "jdbc.password": "hidden"}, "jdbc:mysql is not known"),
    ],
)
def test_catalogs_that_are_not_there_are_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message) as raised:
        translated("c", given)
    assert "hidden" not in str(raised.value)


def test_a_property_without_an_effect_is_named() -> None:
    with pytest.warns(UserWarning, match=r"hadoop\.fs\.s3a\.access\.key has no effect"):
        assert translated("c", {"hadoop.fs.s3a.access.key": "k"}) == {}
