"""Tables as sources and sinks of Structured Streaming. The helpers for ``foreachBatch`` load on Spark 3.5, too."""

from icefield_spark.streaming.epochs import epoch_properties, is_written

__all__ = ["epoch_properties", "is_written"]
