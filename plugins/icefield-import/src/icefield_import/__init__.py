"""Data that is there already, as tables: files that other programs wrote are added where they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icefield import lazy_names

if TYPE_CHECKING:
    from icefield_import.adding import add_files
    from icefield_import.delta_import import import_delta
    from icefield_import.describer import FileDescriber
    from icefield_import.folder_import import ImportedFolder, import_folder
    from icefield_import.folders import ImportedFile
    from icefield_import.hive import import_hive
    from icefield_import.hive_folders import folder_values

# Names are handed on lazily: the hooks are in this package, and each process that lists plugins imports them.
__getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "FileDescriber",
    "ImportedFile",
    "ImportedFolder",
    "add_files",
    "folder_values",
    "import_delta",
    "import_folder",
    "import_hive",
]
