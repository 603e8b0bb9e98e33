"""Write ``docs/guide/rest-compatibility.md`` from a run of Iceberg's REST Compatibility Kit; a test compares the two.

It runs in the environment of development, needs Maven and Java, and takes a minute.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from repository import ROOT
from rest_compatibility import PAGE, judged_by_kit, page

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        PAGE.write_text(page(judged_by_kit(Path(folder))), "utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
