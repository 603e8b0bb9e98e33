"""The properties of the plugin: names, defaults, and the settings made from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from icefield.toolkit import RetryLimits, whole_number

PREFIX: Final = "adls."
_MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class AdlsSettings:
    """The settings of requests, from the properties."""

    read_part: int
    write_part: int
    batch: int
    connect_timeout: int
    request_timeout: int
    limits: RetryLimits


def settings_of(properties: Mapping[str, str]) -> AdlsSettings:
    """Read the properties. Raises ``InvalidArgument`` for a value that cannot be used."""
    return AdlsSettings(
        read_part=whole_number(properties, "adls.read.block-size-bytes", 8 * _MIB, 64 * 1024),
        write_part=whole_number(properties, "adls.write.block-size-bytes", 8 * _MIB, 64 * 1024),
        batch=min(whole_number(properties, "adls.delete.batch-size", 256, 1), 256),  # it takes no more
        connect_timeout=whole_number(properties, "adls.connect-timeout", 5, 1),
        request_timeout=whole_number(properties, "adls.request-timeout", 20, 1),
        limits=RetryLimits.of(properties, PREFIX),
    )
