#!/bin/sh
# Packs an environment for the executors: Icefield and what it needs, without Spark, which is there already.
set -eu
uv venv --quiet --relocatable environment
uv pip install --quiet --python environment/bin/python "icefield[spark,parquet]"
tar -czf environment.tar.gz -C environment .
