"""The Java classes of the catalog: compiled by the compiler that Spark has, when a catalog is attached.

Spark ships Janino for the code that it generates. The classes are compiled from the ``.java`` files beside this module
against the Spark that runs, and go to driver and executors in a temporary jar, by ``ADD JAR``. The compiler takes one
text: imports count for the classes of all files.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
import zipfile
from importlib import resources
from pathlib import Path
from typing import Any

import icefield
from icefield.errors import UnsupportedFeature
from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from icefield_spark.jvm import jvm_class

CATALOG = "icefield.spark.IcefieldCatalog"
MORE = ("icefield.spark.IcefieldRelations", "icefield.spark.IcefieldProcedures")
"""Classes of catalogs with further abilities, the most able first. Each needs interfaces that not every Spark has."""

CLASSES = (CATALOG, *MORE)
"""All classes of catalogs."""

HOLDER = "icefield.spark.Python"
"""The class that holds the Python objects that answer for catalogs."""

# Spark finds the format "iceberg" by the name of this class, unless a jar registers that name, as Java's runtime does.
_FORMAT = "package iceberg; public class DefaultSource extends icefield.spark.NamedTables {}"
_NEEDS = "// needs "
_FRAMES = "icefield.spark.Frames"
PARSER = "parser.java"
"""The file of the classes that stay in the driver: see ``own_statements``."""

_JAR = "icefield-spark-catalog.jar"


def compiled_class(spark: SparkSession, name: str) -> Any:
    """A class of the catalog, as ``java.lang.Class``; the classes are compiled first where the JVM has none.

    Raises ``UnsupportedFeature`` where the classes cannot be compiled or added.
    """
    loader = spark._jsparkSession.sharedState().jarClassLoader()
    try:
        found = loader.loadClass(name)
    except Py4JJavaError as error:
        if "ClassNotFoundException" not in str(error.java_exception):
            raise
    else:
        _send_to_executors(spark, found)
        return found
    try:
        _add(spark, compiled(spark))
    except (Py4JError, TypeError) as error:  # py4j raises TypeError for a missing class of Spark
        raise UnsupportedFeature(
            f"the classes of a catalog cannot be added to Spark {spark.version}: {_reason(error)}; leave name out"
        ) from error
    return loader.loadClass(name)


def maker_of_frames(spark: SparkSession) -> Any:
    """The object in the JVM that makes relations of tables and of files. Raises as ``compiled_class`` does."""
    return compiled_class(spark, _FRAMES).getField("MAKER").get(None)


def compiled(spark: SparkSession) -> dict[str, bytes]:
    """The code of the classes, by their names."""
    loader = jvm_class(spark, "java.lang.Thread").currentThread().getContextClassLoader()
    made: dict[str, bytes] = {}
    for source in (_source(spark), _FORMAT):
        loader = cooked(spark, source, loader, made)
    return made


def cooked(spark: SparkSession, source: str, loader: Any, codes: dict[str, bytes] | None = None) -> Any:
    """A loader of the classes in a source text. ``loader`` finds other classes; ``codes`` receives the code of each."""
    compiler = jvm_class(spark, "org.codehaus.janino.SimpleCompiler")()
    compiler.setSourceVersion(8)
    compiler.setTargetVersion(8)
    compiler.setParentClassLoader(loader)
    compiler.cook(source)
    if codes is not None:
        codes.update({name: bytes(code) for name, code in compiler.getBytecodes().items()})
    return compiler.getClassLoader()


def _add(spark: SparkSession, classes: dict[str, bytes]) -> None:
    folder = Path(tempfile.mkdtemp(prefix="icefield-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / _JAR
    with zipfile.ZipFile(path, "w") as jar:
        for name, code in classes.items():
            jar.writestr(f"{name.replace('.', '/')}.class", code)
    spark._jsparkSession.sessionState().resourceLoader().addJar(str(path))
    _show_to_all_threads(spark, path)


def _send_to_executors(spark: SparkSession, found: Any) -> None:
    """Add the jar of a class that the driver has from a stopped Spark: the executors of the new Spark lack it."""
    context = spark.sparkContext._jsc.sc()
    if _JAR not in str(context.listJars()):
        context.addJar(found.getProtectionDomain().getCodeSource().getLocation().getPath())


def _show_to_all_threads(spark: SparkSession, jar: Path) -> None:
    """Let every thread of the JVM find the classes: only the thread that added the jar has the session's loader."""
    loader, found = spark._jsparkSession.sharedState().jarClassLoader(), None
    mutable = jvm_class(spark, "java.lang.Class").forName("org.apache.spark.util.MutableURLClassLoader")
    while loader is not None:
        if mutable.isInstance(loader):
            found = loader
        loader = loader.getParent()
    if found is not None:
        found.addURL(jvm_class(spark, "java.io.File")(str(jar)).toURI().toURL())


def _reason(error: Exception) -> str:
    said = str(error.java_exception) if isinstance(error, Py4JJavaError) else str(error)
    return (said.splitlines() or [type(error).__name__])[0][:300]


def catalog_class(spark: SparkSession) -> str:
    """The name of the catalog class with the most abilities that a Spark can load."""
    for name in MORE:
        try:
            compiled_class(spark, CATALOG).getClassLoader().loadClass(name)
        except Py4JJavaError:
            continue
        return name
    return CATALOG


def _serves(spark: SparkSession, first: str) -> bool:
    """Whether a Spark has the interface that the first line of a file asks for."""
    if not first.startswith(_NEEDS):
        return True
    try:
        jvm_class(spark, "java.lang.Thread").currentThread().getContextClassLoader().loadClass(first[len(_NEEDS) :])
    except Py4JJavaError:
        return False
    return True


def _source(spark: SparkSession) -> str:
    folder = resources.files("icefield_spark.catalog")
    files = sorted(each.name for each in folder.iterdir() if each.name.endswith(".java") and each.name != PARSER)
    texts = [folder.joinpath(name).read_text("utf-8").splitlines() for name in files]
    lines = [line for text in texts if _serves(spark, text[0]) for line in text if not line.startswith(_NEEDS)]
    imports = sorted({line for line in lines if line.startswith("import ")})
    rest = [line for line in lines if not line.startswith("import ")]
    source = "\n".join(["package icefield.spark;", *imports, *rest])
    session = spark._jsparkSession.getClass().getName()
    is_old_scala = jvm_class(spark, "scala.util.Properties").versionNumberString().startswith("2.12")
    source = source.replace("/*SESSION*/", session).replace("/*VERSION*/", icefield.__version__)
    return source.replace("/*IMMUTABLE*/", "" if is_old_scala else "immutable.")
