"""Foreign engines in processes of their own: an engine that aborts or hangs fails only the test that asked it.

This also keeps the engines' threads out of the processes of the tests, which fork.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from importlib.resources import files
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, Final, Self

import pyarrow as pa
from forked import forking

_SECONDS: Final = 300.0


class EngineDied(AssertionError):
    """An engine ended its process, or did not answer."""


class Engine:
    """A proxy for the engine that ``opened`` makes. Its process starts with the first call, and again after a crash.

    A context manager. Several threads may ask.
    """

    def __init__(self, name: str, opened: Callable[[], Any]) -> None:
        self._name, self._opened = name, opened
        self._asking = Lock()
        self._process: Any = None
        self._pipe: Connection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        if self._pipe is not None:
            self._pipe.close()  # the process ends when it reads that
            self._process.join(5)
            self._process.kill()
            self._process.join()
            self._process = self._pipe = None

    def ask(self, method: str, *arguments: Any) -> Any:
        """Call a method of the engine, and return its result or raise its error. Raises ``EngineDied``."""
        with self._asking:
            pipe = self._started()
            try:
                pipe.send((method, arguments))
                if not pipe.poll(_SECONDS):
                    raise EngineDied(f"{self._name} gave no answer within {_SECONDS:g} s to {arguments}")
                returned, answer = pipe.recv()
            except (EOFError, OSError) as error:
                self._process.join(5)
                raise EngineDied(f"{self._name} ended with {self._process.exitcode} at {arguments}") from error
            except EngineDied:
                self._process.kill()
                raise
            finally:
                if not self._process.is_alive():
                    self.close()
        if not returned:
            raise answer
        return answer

    def _started(self) -> Connection:
        if self._pipe is None:
            context = forking()
            self._pipe, theirs = context.Pipe()
            self._process = context.Process(target=_serve, args=(theirs, self._opened), daemon=True)
            self._process.start()
            theirs.close()
        return self._pipe


class DuckDBEngine(Engine):
    """A connection to DuckDB that can read Iceberg tables."""

    def __init__(self) -> None:
        super().__init__("DuckDB", _Duck)

    def execute(self, query: str) -> Self:
        """Run a statement; its result can be fetched afterwards."""
        self.ask("execute", query)
        return self

    def fetchall(self) -> list[tuple[Any, ...]]:
        """The rows of the last result."""
        found: list[tuple[Any, ...]] = self.ask("fetchall")
        return found

    def to_arrow_table(self) -> pa.Table:
        """The last result as a table."""
        return self.ask("to_arrow_table")


class ClickHouseEngine(Engine):
    """A connection to ClickHouse. It reads no file outside of its working directory, which is ``/``."""

    def __init__(self) -> None:
        super().__init__("ClickHouse", _Click)

    def query(self, statement: str, form: str = "Arrow") -> bytes:
        """The answer to a statement in one of ClickHouse's formats."""
        found: bytes = self.ask("query", statement, form)
        return found

    def arrow(self, statement: str) -> pa.Table:
        """The answer as a table."""
        return pa.ipc.open_file(self.query(statement)).read_all()


class _Duck:
    """DuckDB; its extensions come from PyPI, nothing is downloaded."""

    def __init__(self) -> None:
        import duckdb

        self._connection = duckdb.connect()
        for name in ("avro", "httpfs", "iceberg"):
            folder = Path(str(files(f"duckdb_extension_{name}"))) / "extensions" / f"v{duckdb.__version__}"
            self._connection.execute(f"LOAD '{folder / name}.duckdb_extension'")
        self._connection.execute("SET TimeZone = 'UTC'")

    def execute(self, query: str) -> None:
        self._result = self._connection.execute(query)

    def fetchall(self) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = self._result.fetchall()
        return found

    def to_arrow_table(self) -> pa.Table:
        return self._result.to_arrow_table()


class _Click:
    def __init__(self) -> None:
        import chdb

        os.chdir("/")
        self._connection = chdb.connect()

    def query(self, statement: str, form: str) -> bytes:
        return bytes(self._connection.query(statement, form).bytes())


def _serve(pipe: Connection, opened: Callable[[], Any]) -> None:
    engine = None
    while True:
        try:
            method, arguments = pipe.recv()
        except EOFError:
            return
        answer: tuple[bool, Any]
        try:
            engine = engine or opened()
            answer = True, getattr(engine, method)(*arguments)
        except Exception as error:
            answer = False, _sendable(error)
        pipe.send(answer)


def _sendable(error: Exception) -> Exception:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
