"""Damaged files by the thousand, read in a process of their own, so that a crash is a failure and not the end.

``fuzz`` damages whole files in ways that can be repeated by number. Each damaged file must give rows that are sound, or
an error of Icefield's that names the file, in bounded time and memory.
"""

from __future__ import annotations

import json
import os
import pickle
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from bounded import peak_memory
from icefield.abc import FileFormat, ReadRequest
from icefield.errors import IcefieldError
from icefield.toolkit import BytesInput

COUNT = 20_000 if os.environ.get("ICEFIELD_SOAK") else 500
LOCATION = "memory://damaged/file"
_SECONDS = 1_200
_LONGEST_READ = 20.0


class Outcome(NamedTuple):
    """The number of files by their result (``rows``, or the name of an error), and the peak memory in bytes."""

    counts: Mapping[str, int]
    memory: int


def fuzz(file_format: str, files: Mapping[str, bytes], *, count: int = COUNT, seed: int = 0) -> Outcome:
    """Damage files and read them as ``module:attribute`` does. Raises ``AssertionError``, naming file and number."""
    with tempfile.TemporaryDirectory() as folder:
        held = Path(folder) / "files"
        held.write_bytes(pickle.dumps((file_format, dict(files), seed, count)))
        with (Path(folder) / "progress").open("w+b") as progress:
            command = [sys.executable, "-X", "faulthandler", str(Path(__file__)), str(held)]
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=progress, timeout=_SECONDS, check=False)
            progress.seek(0)
            said = progress.read().decode(errors="replace")
    numbers = [line for line in said.splitlines() if line.startswith("number ")]
    assert done.returncode == 0, f"{numbers[-1:]}: the process ended with {done.returncode}\n{said[-1500:]}"
    counts, memory = json.loads(done.stdout)
    return Outcome(counts, memory)


def mutated(data: bytes, rng: random.Random) -> bytes:
    """A damaged copy: cut off, with other bytes in place of some, or with a few bits turned."""
    out = bytearray(data)
    match rng.randrange(5):
        case 0:
            del out[rng.randrange(len(out)) :]
        case 1:
            start = rng.randrange(len(out))
            out[start : start + rng.randrange(1, 30)] = rng.randbytes(rng.randrange(0, 30))
        case 2:
            out[rng.randrange(len(out))] = rng.choice((0, 1, 2, 0x7F, 0x80, 0xFF))
        case _:
            for _ in range(rng.randrange(1, 4)):
                out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    return bytes(out)


def _outcome(file_format: FileFormat, data: bytes) -> str:
    try:
        with file_format.open_reader(BytesInput(data), LOCATION, size=len(data)) as reader:
            for batch in reader.read(ReadRequest(reader.schema, positions=True)):
                batch.validate(full=True)
            reader.metrics()
    except IcefieldError as error:
        return type(error).__name__ if LOCATION in str(error) else f"an error that does not name the file: {error}"
    return "rows"


def _main(held: str) -> None:
    spelled, files, seed, count = pickle.loads(Path(held).read_bytes())
    module, _, name = spelled.partition(":")
    file_format: FileFormat = getattr(import_module(module), name)()
    names = sorted(files)
    for each in names:
        assert _outcome(file_format, files[each]) == "rows", f"{each} cannot be read whole"
    counts: Counter[str] = Counter()
    for number in range(seed, seed + count):
        chosen = names[number % len(names)]
        print(f"number {number}, {chosen}", file=sys.stderr, flush=True)
        started = time.monotonic()
        counts[_outcome(file_format, mutated(files[chosen], random.Random(number)))] += 1
        taken = time.monotonic() - started
        assert taken < _LONGEST_READ, f"number {number}, {chosen}: {taken:.1f} seconds"
    print(json.dumps([counts, peak_memory()]))


if __name__ == "__main__":
    _main(sys.argv[1])
