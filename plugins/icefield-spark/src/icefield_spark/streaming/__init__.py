"""Tables as sources and sinks of Structured Streaming."""

from icefield_spark.streaming.epochs import epoch_properties, is_written
from icefield_spark.streaming.stream_reader import IcefieldStreamReader
from icefield_spark.streaming.stream_writer import IcefieldStreamWriter

__all__ = ["IcefieldStreamReader", "IcefieldStreamWriter", "epoch_properties", "is_written"]
