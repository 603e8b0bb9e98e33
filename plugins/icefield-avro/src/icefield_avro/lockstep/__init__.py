"""The decoder that advances many records together, one vector operation for one field of all of them."""

from icefield_avro.lockstep.building import Unfit
from icefield_avro.lockstep.decoder import LockStepDecoder
from icefield_avro.lockstep.tape import Doubt, Memory

__all__ = ["Doubt", "LockStepDecoder", "Memory", "Unfit"]
