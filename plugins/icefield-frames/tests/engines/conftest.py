"""Tests against Ray, Daft and Dask, which ``make engines`` installs in an environment of their own."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
