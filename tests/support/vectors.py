"""The test vectors of tests/spec/vectors.json, loaded once."""

import json
from pathlib import Path
from typing import Any

VECTORS: dict[str, Any] = json.loads((Path(__file__).parents[1] / "spec" / "vectors.json").read_text("utf-8"))
