"""The properties of the plugin: names, defaults, and what they are turned into."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from icefield.errors import InvalidArgument

from icefield_adls.patience import Patience

PREFIX: Final = "adls."
_MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Settings:
    """What the properties say of requests."""

    read_part: int
    write_part: int
    batch: int
    connect_timeout: int
    request_timeout: int
    patience: Patience


def settings_of(properties: Mapping[str, str]) -> Settings:
    """Read the properties. Raises ``InvalidArgument`` for a value that cannot be used."""
    return Settings(
        read_part=_number(properties, "adls.read.block-size-bytes", 8 * _MIB, 64 * 1024),
        write_part=_number(properties, "adls.write.block-size-bytes", 8 * _MIB, 64 * 1024),
        batch=min(_number(properties, "adls.delete.batch-size", 256, 1), 256),  # 256 is the most that the store takes
        connect_timeout=_number(properties, "adls.connect-timeout", 5, 1),
        request_timeout=_number(properties, "adls.request-timeout", 20, 1),
        patience=Patience(
            retries=_number(properties, "adls.retry.num-retries", 6, 0),
            min_wait=_number(properties, "adls.retry.min-wait-ms", 100, 1) / 1_000,
            max_wait=_number(properties, "adls.retry.max-wait-ms", 5_000, 1) / 1_000,
            total=_number(properties, "adls.retry.total-timeout-ms", 30_000, 1) / 1_000,
        ),
    )


def _number(properties: Mapping[str, str], name: str, default: int, least: int) -> int:
    text = properties.get(name)
    if text is None:
        return default
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise InvalidArgument(f"{name} is a whole number of {least} or more, not {text!r}")
    return number
