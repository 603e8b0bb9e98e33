"""What the kernel itself provides, declared as any other plugin declares it."""

from __future__ import annotations

from icefield.plugins import Provider, hookimpl


@hookimpl
def icefield_file_systems() -> list[Provider]:
    return [
        Provider(("file",), "icefield.builtin.local:LocalFileSystem"),
        Provider(("memory",), "icefield.builtin.memory:MemoryFileSystem"),
    ]


@hookimpl
def icefield_commit_strategies() -> list[Provider]:
    return [
        Provider(("rename",), "icefield.builtin.rename:RenameStrategy"),
        Provider(("create",), "icefield.builtin.create:CreateStrategy"),
    ]


@hookimpl
def icefield_catalogs() -> list[Provider]:
    return [Provider(("directory",), "icefield.builtin.directory:DirectoryBackend")]
