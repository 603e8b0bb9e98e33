"""The Java classes of the catalog: compiled by the compiler that Spark has, when a catalog is attached.

Spark ships Janino for the code that it generates. The classes are compiled from ``classes.java`` against the Spark that
runs, and go to driver and executors in a temporary jar, by ``ADD JAR``.
"""

from __future__ import annotations

import re
import tempfile
import zipfile
from importlib import resources
from pathlib import Path
from typing import Any

from icefield.errors import UnsupportedFeature
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from icefield_spark.jvm import jvm_class

CATALOG = "icefield.spark.IcefieldCatalog"


def compiled_class(spark: SparkSession, name: str) -> Any:
    """A class of the catalog, as ``java.lang.Class``; the classes are compiled first where the JVM has none.

    Raises ``UnsupportedFeature`` where the classes cannot be compiled or added.
    """
    loader = spark._jsparkSession.sharedState().jarClassLoader()
    try:
        return loader.loadClass(name)
    except Py4JJavaError as error:
        if "ClassNotFoundException" not in str(error.java_exception):
            raise
    _add(spark, _compile(spark))
    return loader.loadClass(name)


def _compile(spark: SparkSession) -> dict[str, bytes]:
    compiler = jvm_class(spark, "org.codehaus.janino.SimpleCompiler")()
    thread = jvm_class(spark, "java.lang.Thread").currentThread()
    compiler.setSourceVersion(8)
    compiler.setTargetVersion(8)
    compiler.setParentClassLoader(thread.getContextClassLoader())
    try:
        compiler.cook(_source(spark))
    except Py4JJavaError as error:
        reason = str(error.java_exception)
        raise UnsupportedFeature(
            f"the catalog's classes cannot be compiled against Spark {spark.version}: {reason:.300}"
        ) from error
    return {name: bytes(code) for name, code in compiler.getBytecodes().items()}


def _add(spark: SparkSession, classes: dict[str, bytes]) -> None:
    path = Path(tempfile.mkdtemp(prefix="icefield-")) / "icefield-spark-catalog.jar"
    with zipfile.ZipFile(path, "w") as jar:
        for name, code in classes.items():
            jar.writestr(f"{name.replace('.', '/')}.class", code)
    spark._jsparkSession.sessionState().resourceLoader().addJar(str(path))


def _source(spark: SparkSession) -> str:
    source = resources.files("icefield_spark.catalog").joinpath("classes.java").read_text("utf-8")
    session = spark._jsparkSession.getClass().getName()
    is_old_scala = jvm_class(spark, "scala.util.Properties").versionNumberString().startswith("2.12")
    source = source.replace("/*SESSION*/", session)
    return source.replace("/*IMMUTABLE*/", "" if is_old_scala else "immutable.")
