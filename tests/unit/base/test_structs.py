from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

from repository import text_of

_ROOTS = tomllib.loads(text_of(Path("pyproject.toml")))["tool"]["importlinter"]["root_packages"]

_TWO_THREADS = """
from __future__ import annotations

import threading
import time

import msgspec

from icefield.base.structs import decodable


def found_out_slowly():
    time.sleep(0.5)
    return int


@decodable
class Inner(msgspec.Struct):
    value: found_out_slowly()


@decodable
class Outer(msgspec.Struct):
    inner: Inner


def decode():
    assert msgspec.json.decode(b'{"inner": {"value": 1}}', type=Outer).inner.value == 1


first = threading.Thread(target=decode)
first.start()
time.sleep(0.1)
decode()
first.join()
"""

_FOUND_OUT_LATER = """
import importlib
import pkgutil
import sys

import msgspec
from msgspec import _utils


def below(kind):
    for each in kind.__subclasses__():
        yield each
        yield from below(each)


for root in sys.argv[1:]:
    package = importlib.import_module(root)
    for module in pkgutil.walk_packages(package.__path__, f"{root}."):
        if not module.name.endswith("__main__"):
            try:
                importlib.import_module(module.name)
            except ModuleNotFoundError as error:
                # A library of another environment: daft, ray, dask, dlt, dagster.
                if error.name is None or error.name.startswith("icefield"):
                    raise
kinds = {kind for kind in below(msgspec.Struct) if kind.__module__.startswith("icefield") and kind.__struct_fields__}
assert len(kinds) > 40, "structs are not found any more"

late = []
real = _utils._get_class_mro_and_typevar_mappings
_utils._get_class_mro_and_typevar_mappings = lambda kind: (late.append(kind), real(kind))[1]
seen = msgspec.defstruct("Seen", ["field"])
for kind in (seen, *kinds):
    msgspec.json.Decoder(kind)
assert seen in late, "what msgspec finds out of a struct is not seen any more"
print(*sorted(f"{kind.__module__}.{kind.__qualname__}" for kind in kinds.intersection(late)))
"""


def _printed(program: str, *given: str) -> str:
    ran = subprocess.run([sys.executable, "-c", program, *given], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def test_threads_that_decode_a_struct_for_the_first_time_do_not_end_the_process() -> None:
    _printed(_TWO_THREADS)


def test_every_struct_is_ready_for_threads_once_its_module_is_imported() -> None:
    assert _printed(_FOUND_OUT_LATER, *_ROOTS) == ""
