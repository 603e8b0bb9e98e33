#!/bin/sh
# Runs the job. MASTER is the cluster: yarn, spark://host:7077, k8s://https://host:6443, ...
set -eu
export PYSPARK_PYTHON=./environment/bin/python
spark-submit --master "$MASTER" \
  --archives environment.tar.gz#environment \
  job.py
