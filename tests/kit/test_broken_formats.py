"""File formats that are broken on purpose: the intended check of the kit must reject each of them, and say why."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from icefield.abc import FormatWriter, OutputStream
from icefield.errors import UnsupportedFeature
from icefield.schema import Schema
from icefield.types import FixedType, UUIDType
from icefield_testing import ManifestFormatSuite
from kit_checks import checks, failures, rejection, rejections
from mutants import Mutant
from mutants.formats import MUTANTS
from mutants.formats.damage import AbortsOnDamage
from mutants.formats.handed_on import Right
from mutants.formats.large import LARGE_CHECKS
from mutants.formats.suites import OverAvro, suite_of


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_a_broken_file_format_is_rejected_by_the_check_for_it_with_its_cause(
    mutant: Mutant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # where bytes that end a process are kept
    suite = suite_of(mutant.plugin)
    alone = type("Suite", (suite,), {name: None for name, _ in checks(suite) if name != mutant.check})
    found = rejections(alone, {"file_format": lambda _: mutant.plugin()})
    assert found.keys() == {mutant.check}
    said = " ".join(found[mutant.check].split())
    assert mutant.cause in said, said
    assert "If this fails" in said


@pytest.mark.slow
def test_a_right_file_format_passes_every_check() -> None:
    assert failures(OverAvro, {"file_format": lambda _: Right()}) == []


@pytest.mark.parametrize("check", ["test_every_primitive_type_reads_back", "test_every_type_reads_back_at_every_place"])
def test_a_gap_that_is_declared_must_be_refused(check: str) -> None:
    others: dict[str, Any] = {name: None for name, _ in checks(ManifestFormatSuite) if name != check}
    alone = type("Suite", (OverAvro,), {**others, "unsupported": (FixedType,)})
    assert failures(alone, {"file_format": lambda _: Right()}) == [check]


def test_a_gap_that_is_not_declared_is_rejected() -> None:
    class HasNoUuids(Right):
        def open_writer(self, sink: OutputStream, schema: Schema, **options: Any) -> FormatWriter:
            if any(isinstance(field.field_type, UUIDType) for field in schema.fields):
                raise UnsupportedFeature("no uuids here")
            return super().open_writer(sink, schema, **options)

    check = "test_every_primitive_type_reads_back"
    others: dict[str, Any] = {name: None for name, _ in checks(ManifestFormatSuite) if name != check}
    rejecting = type("Suite", (OverAvro,), others)
    assert failures(rejecting, {"file_format": lambda _: HasNoUuids()}) == [check]
    declaring = type("Suite", (OverAvro,), {**others, "unsupported": (UUIDType,)})
    assert failures(declaring, {"file_format": lambda _: HasNoUuids()}) == []


def test_every_check_states_what_to_look_at_when_it_fails() -> None:
    for name, check in checks(ManifestFormatSuite):
        assert "If this fails" in (check.__doc__ or ""), name


@pytest.mark.slow
def test_a_fresh_interpreter_reads_damage_where_the_format_does_not_survive_a_fork(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    suite = type("Suite", (OverAvro,), {"survives_fork": False})
    after = "test_bytes_after_the_end_are_an_error_or_make_no_difference"
    assert rejection(suite, after, {"file_format": lambda _: Right()}) == ""
    said = rejection(suite, "test_a_library_does_not_end_the_process", {"file_format": lambda _: AbortsOnDamage()})
    assert "the library ended the process (SIGABRT) while it read 0 bytes" in said


def test_there_is_a_broken_file_format_for_every_check() -> None:
    about_the_plugin = {"test_the_plugin_states_its_contract_number"}  # test_contract_numbers.py
    large = set(LARGE_CHECKS.values())  # test_broken_row_formats.py
    found = {name for name, _ in checks(ManifestFormatSuite)}
    assert found - about_the_plugin == {mutant.check for mutant in MUTANTS} | large
