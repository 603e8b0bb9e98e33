"""Structs: what JSON is decoded into, ready for threads."""

from icefield.structs.decodable import decodable

__all__ = ["decodable"]
