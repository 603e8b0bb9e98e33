"""What all guards have in common: where they come from is written down, and a footer is checked once."""

import pkgutil
from importlib import import_module
from pathlib import Path

import icefield_parquet
import pyarrow as pa
import pytest
from icefield.abc import ReadRequest
from icefield.errors import InvalidFile, UnsupportedFeature
from icefield.schema import Schema, schema_to_arrow
from icefield.types import IntegerType, NestedField
from icefield_parquet import guard
from icefield_parquet.guard.errors import reading
from icefield_parquet.guard.verdicts import verdict_of
from icefield_parquet.reading import reader as reader_module
from parquet_files import reader_of, write

GUARDS = sorted(module.name for module in pkgutil.iter_modules(guard.__path__))
SHARED = {"chunk_metadata", "errors", "verdicts"}  # what guards use, rather than guards


@pytest.mark.parametrize("name", GUARDS)
def test_each_guard_names_its_cause_and_when_it_may_go(name):
    said = " ".join(import_module(f"icefield_parquet.guard.{name}").__doc__.split())
    assert "may go" in said
    assert (
        "https://github.com/apache/arrow/issues/" in said
        or "eproducer" in said
        or name in {"chunk_metadata", "errors", "verdicts"}
    )


def test_no_module_reads_bytes_with_regular_expressions():
    sources = Path(icefield_parquet.__file__).parent.rglob("*.py")
    assert not [path.name for path in sources if "import re\n" in path.read_text()]


@pytest.mark.parametrize("message", ["Cannot decrypt ColumnMetadata", "something else"])
def test_what_an_error_of_pyarrow_says_decides_nothing(message):
    for encrypted, expected in ((None, InvalidFile), (lambda: False, InvalidFile), (lambda: True, UnsupportedFeature)):
        with pytest.raises(expected, match=message), reading("memory://x", "the pages", encrypted):
            raise OSError(message)


class TestVerdicts:
    @pytest.fixture
    def data(self, request):
        schema = Schema(NestedField(1, "a", IntegerType(), required=True))
        rows = pa.array(range(len(request.node.name)), pa.int32())  # no two tests have the same footer
        return write(schema, pa.table([rows], schema=schema_to_arrow(schema)))[0]

    @pytest.fixture
    def calls(self, monkeypatch):
        calls = []
        for name in ("check_column_chunks", "check_statistics"):
            real = getattr(reader_module, name)
            monkeypatch.setattr(
                reader_module, name, lambda *args, name=name, real=real: (calls.append(name), real(*args))[1]
            )
        return calls

    def test_a_file_that_is_opened_again_is_not_checked_again(self, data, calls):
        for _ in range(3):
            with reader_of(data) as reader:
                reader.metrics()
                assert sum(batch.num_rows for batch in reader.read(ReadRequest(reader.schema))) > 0
        assert sorted(calls) == ["check_column_chunks", "check_statistics"]

    def test_a_file_that_was_refused_is_refused_again(self, data, monkeypatch):
        def refuse(*_):
            raise ValueError("damaged")

        monkeypatch.setattr(reader_module, "check_column_chunks", refuse)
        for _ in range(2):
            with reader_of(data) as reader, pytest.raises(InvalidFile, match="damaged"):
                reader.metrics()

    def test_another_footer_or_size_has_another_verdict(self):
        verdict = verdict_of(b"footer", 10)
        assert verdict_of(b"footer", 10) is verdict
        assert verdict_of(b"footer", 11) is not verdict
        assert verdict_of(b"foot", 10) is not verdict
