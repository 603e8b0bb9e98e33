"""The decoder that advances many records together, one vector operation for one field of all of them.

``plugins/icefield-avro/decoder.md`` shows each technique with an example that a test runs.
"""

from icefield_avro.vectorized.building import Unfit
from icefield_avro.vectorized.byte_buffer import ByteBuffer, Memory, Unproven
from icefield_avro.vectorized.decoder import VectorizedDecoder

__all__ = ["ByteBuffer", "Memory", "Unfit", "Unproven", "VectorizedDecoder"]
