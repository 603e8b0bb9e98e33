"""Runs dbt in the process of a Spark session that has a catalog of Icefield: ``run_dbt.py build --profiles-dir .``."""

import os
import sys

from dbt.cli.main import dbtRunner
from icefield_spark import attach, ensure_java
from pyspark.sql import SparkSession

ensure_java()
os.environ["PYSPARK_PYTHON"] = sys.executable
spark = SparkSession.builder.master("local[2]").getOrCreate()
attach(spark, "lake", name="lake")  # the catalog `lake` of icefield.toml
spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.shop")
spark.sql("USE lake.shop")  # a snapshot of dbt makes a view without a namespace
sys.exit(not dbtRunner().invoke(sys.argv[1:]).success)
