"""The session of a micro-batch: a clone of the session that started its stream, with views of its own."""

from __future__ import annotations

from typing import Final

from pyspark.sql import SparkSession

from icefield_spark.jvm import is_connected, jvm_class

_QUERY: Final = "sql.streaming.queryId"
"""A property of the thread that runs the batches of a query, and with them functions of ``foreachBatch``."""


def session_here(attached: SparkSession) -> SparkSession:
    """The session of the batch that this thread runs; outside of ``foreachBatch`` the given session.

    The query determines the session, not the active session: ``createDataFrame`` of another session makes that session
    active. A thread that the function starts runs no batch: give it the session by ``attach(batch.sparkSession,
    catalog)``. Through Spark Connect the functions run in another process, and attach to the session that they find
    there.
    """
    if is_connected(attached):
        return attached
    query = attached.sparkContext.getLocalProperty(_QUERY)
    if query is None:
        return attached
    running = attached._jsparkSession.sharedState().activeStreamingQueries()
    found = running.get(jvm_class(attached, "java.util.UUID").fromString(query))
    return attached if found is None else SparkSession(attached.sparkContext, found.sparkSessionForStream())
