"""Stock Spark with Icefield, which answers requests over its standard input and output, as ``judge.py`` does.

Runs in the environment of the tests, with the PySpark of the environment of ``judge.py`` before it on the path.
"""

import json
import os
import sys

import icefield
from icefield_spark import attach
from judge import answer_of, end, session


def main(zone):
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever Java prints is no answer
    spark = session("", zone)
    attached = {}
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["do"] == "catalog":
                name = request["name"]
                attached[name] = attach(spark, icefield.load_catalog(name, **request["given"]), name=name)
                answer = {}
            else:
                # Spark itself runs CALL, and ice.sql runs all other statements.
                run = spark.sql if request["text"].startswith("CALL") else attached[request["name"]].sql
                answer = answer_of(run(request["text"]))
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)
    end(spark)


if __name__ == "__main__":
    main(*sys.argv[1:])
