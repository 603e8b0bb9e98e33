"""Tables as sources and sinks of Structured Streaming. What ``foreachBatch`` takes loads on every Spark, 3.5 too."""

from icefield_spark.streaming.epochs import epoch_properties, is_written

__all__ = ["epoch_properties", "is_written"]
