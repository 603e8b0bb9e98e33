#!/bin/sh
# Runs the job. MASTER is the cluster: yarn, spark://host:7077, k8s://https://host:6443, ...
set -eu
spark-submit --master "$MASTER" \
  --archives environment.tar.gz#environment \
  --conf spark.pyspark.python=./environment/bin/python \
  --conf spark.pyspark.driver.python=environment/bin/python \
  job.py
