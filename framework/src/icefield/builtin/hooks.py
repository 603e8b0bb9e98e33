"""The plugin hooks of the kernel's own file systems, commit strategies and catalog."""

from __future__ import annotations

from icefield.plugins import Provider, hookimpl


@hookimpl
def icefield_file_systems() -> list[Provider]:
    """Provide local files and memory."""
    return [
        Provider(("file",), "icefield.builtin.local:LocalFileSystem", contract=(1, 1)),
        Provider(("memory",), "icefield.builtin.memory:MemoryFileSystem", contract=(1, 1)),
    ]


@hookimpl
def icefield_commit_strategies() -> list[Provider]:
    """Provide the strategies ``rename`` and ``create``."""
    return [
        Provider(("rename",), "icefield.builtin.strategies:RenameStrategy", contract=(2, 2)),
        Provider(("create",), "icefield.builtin.strategies:CreateStrategy", contract=(2, 2)),
    ]


@hookimpl
def icefield_catalogs() -> list[Provider]:
    """Provide the catalog ``directory``."""
    return [Provider(("directory",), "icefield.builtin.directory:DirectoryBackend", contract=(2, 2))]
