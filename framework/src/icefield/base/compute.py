"""The functions of ``pyarrow.compute``, which is imported when one of them is first used: ``compute as pc``.

With its import pyarrow makes all of its functions and their documentation. That takes 45 ms.
"""

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    found = globals()[name] = getattr(import_module("pyarrow.compute"), name)
    return found
