"""The lowest layer: small helpers that every other package of the kernel may use."""

from icefield.base.concurrency import lazy, reset_after_fork

__all__ = ["lazy", "reset_after_fork"]
