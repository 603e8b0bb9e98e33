"""The plugin's hooks. Listing plugins imports this module, so it imports nothing heavy."""

from __future__ import annotations

from icefield import Provider, hookimpl


@hookimpl
def icefield_file_formats() -> list[Provider]:
    return [Provider(("arrow-ipc",), "icefield_arrow_ipc.arrow_ipc_format:ArrowIpcFormat", contract=(2, 2))]
