"""The start of a server for a test: a free port, a process to wait for and to stop, and the folder of its software."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from fcntl import LOCK_EX, flock
from itertools import cycle
from pathlib import Path
from typing import IO, Any, NoReturn, Protocol
from uuid import uuid4

import pytest

REPOSITORY = Path(__file__).parents[3]
# The folder is inside the environment, so that `make clean` deletes it.
TOOLS = Path(os.environ.get("ICEFIELD_TOOLS", REPOSITORY / ".venv" / "servers"))
_KEEPER = Path(__file__).parent / "keeper.py"
_SECONDS_TO_END = 60
# Both attempts together take less than ten minutes, after which a hanging test and its process are ended.
_SECONDS_TO_INSTALL = 240
_ATTEMPTS = 2
# Each of twelve test processes has a thousand ports, in random order, because another run may use the same ports.
_SLICE = 20_000 + 1_000 * (int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % 12)
_PORTS = cycle(random.sample(range(_SLICE, _SLICE + 1_000), 1_000))
REQUIRED = bool(os.environ.get("ICEFIELD_REQUIRE_SERVERS"))
_RUN = os.environ.get("PYTEST_XDIST_TESTRUNUID", uuid4().hex)


class Run(Protocol):
    """Runs a command to its end, in a folder if one is given."""

    def __call__(self, command: Sequence[str | Path], folder: Path | None = None) -> None: ...


def unavailable(reason: str) -> NoReturn:
    """Skip the test because a server is not available; if servers are required, fail it."""
    if REQUIRED:
        pytest.fail(f"a server is required and cannot be had: {reason}")
    pytest.skip(reason)


def asked(process: subprocess.Popen[str], error: type[Exception], request: Mapping[str, Any]) -> dict[str, Any]:
    """Send a request to a process and return the answer, each a line of JSON; raise ``error`` if the answer is one."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(request) + "\n")
    process.stdin.flush()
    line = process.stdout.readline()
    if not line:
        raise error("the process has ended")
    answer: dict[str, Any] = json.loads(line)
    if "error" in answer:
        raise error(answer["error"])
    return answer


def free_port() -> int:
    """Return a loopback port without a listener, which no other process of the run receives.

    Systems assign ports from 32768 on when a process asks for any port. Another process could get such a port before
    the server listens, and would then answer in its place.
    """
    while True:
        port = next(_PORTS)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def listening() -> socket.socket:
    """A socket of the loopback address with a port of its own: clients wait until a process serves it."""
    made = socket.socket()
    made.bind(("127.0.0.1", 0))
    made.listen(128)
    return made


def uri_of(address: socket.socket) -> str:
    """Return the URI of the socket for clients."""
    return f"http://127.0.0.1:{address.getsockname()[1]}"


def listens(port: int) -> bool:
    """Whether something accepts connections on the port of the loopback address."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def answers(url: str) -> bool:
    """Whether an HTTP server answers, with any status."""
    try:
        with urllib.request.urlopen(url, timeout=2):
            return True
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False


@contextmanager
def running(
    command: Sequence[str | Path],
    ready: Callable[[], bool],
    *,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    seconds: float = 60,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server under a keeper, wait until it is ``ready``, and end it with all its children when the block ends.

    It also ends in this way when this process is killed. ``environment`` is added to the process's own. Its output goes
    to a file; the end of it is shown when it does not become ready within ``seconds``.
    """
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_KEEPER), str(os.getpid()), *(str(part) for part in command)],
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **(environment or {})},
            cwd=folder,
            start_new_session=True,
        )
        try:
            deadline = time.monotonic() + seconds
            while not ready():
                if process.poll() is not None or time.monotonic() > deadline:
                    pytest.fail(f"{Path(str(command[0])).name} did not become ready; it said: {_end_of(output)}")
                time.sleep(0.05)
            yield process
        finally:
            _end(process)


def _end_of(output: IO[bytes]) -> str:
    output.seek(0)
    return output.read()[-2_000:].decode(errors="replace")


def _end(keeper: subprocess.Popen[bytes]) -> None:
    keeper.terminate()
    try:
        keeper.wait(_SECONDS_TO_END)
    except subprocess.TimeoutExpired:
        os.killpg(keeper.pid, signal.SIGKILL)
        keeper.wait()


def installed(name: str, make: Callable[[Path, Run], None]) -> Path:
    """Return the folder with the software of a server. The first test process that needs it has ``make`` fill it.

    ``make`` gets the folder and a function that runs its commands. If it fails or takes too long, it is tried once
    more. If it fails again, every test of the run that needs the software is skipped, or fails where servers are
    required.
    """
    TOOLS.mkdir(parents=True, exist_ok=True)
    folder = TOOLS / name
    with (TOOLS / f"{name}.lock").open("a+") as lock:
        flock(lock, LOCK_EX)
        if not folder.exists():
            lock.seek(0)
            run, _, reason = lock.read().partition("\n")
            if run != _RUN or not reason:
                reason = _installed(folder, make)
                lock.truncate(0)
                lock.write(f"{_RUN}\n{reason}")
            if reason:
                unavailable(f"{name} cannot be installed: {reason}")
    return folder


def _installed(folder: Path, make: Callable[[Path, Run], None]) -> str:
    """The reason why the folder could not be filled; empty after success."""
    partial = folder.with_name(f"{folder.name}.partial")
    reason = ""
    for _ in range(_ATTEMPTS):
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        try:
            make(partial, _commands(_SECONDS_TO_INSTALL))
        except (OSError, subprocess.SubprocessError) as error:
            reason = f"{error} {getattr(error, 'output', None) or ''}"
        else:
            partial.rename(folder)
            return ""
    return reason


def _commands(seconds: float) -> Run:
    """Return a function that runs commands; all commands together may take so many seconds."""
    deadline = time.monotonic() + seconds

    def run(command: Sequence[str | Path], folder: Path | None = None) -> None:
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(
                command,
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                cwd=folder,
                start_new_session=True,
            )
            try:
                status = process.wait(max(0.0, deadline - time.monotonic()))
            finally:
                with suppress(ProcessLookupError):  # kill its descendants as well
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            if status:
                raise subprocess.CalledProcessError(status, process.args, _end_of(output))

    return run


def npm_package(name: str, version: str) -> Path:
    """The folder of an npm package's programs, installed with its dependencies."""

    def make(folder: Path, run: Run) -> None:
        command = ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", str(folder)]
        run([*command, f"{name}@{version}"])

    return installed(f"{name.replace('/', '-').lstrip('@')}-{version}", make) / "node_modules" / ".bin"
