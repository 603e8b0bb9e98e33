"""Catalogs that are broken on purpose: the intended check of the kit must reject each of them, and name the cause."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar
from uuid import uuid4

import pytest
from dictionary_catalog import DictionaryBackend, WholeDictionaryBackend
from icefield import Plugins
from icefield.abc import CatalogBackend
from icefield.storage import FileIO
from icefield_testing import CatalogSuite, LossyProxy, RequestFaults
from kit_checks import checks, failures, rejection
from mutants import Mutant
from mutants.catalogs import MUTANTS
from mutants.catalogs.silence import SILENT, OverASocket, echoing
from serviced_dictionary import CALLS, OverAService

_TRIES = 10
"""A race of threads may end well, or in another pair of changes, by luck. Nothing else needs a second try."""


class Suite(CatalogSuite):
    credentials = ({"dictionary.password": "{secret}"},)
    time_out_properties: ClassVar = {"dictionary.seconds": "0.1"}
    silence_seconds = 1.0
    hold_seconds = 1.0  # a rival that no lock keeps out needs less, even on a loaded machine

    def backend_through(self, service: RequestFaults, backend: CatalogBackend) -> CatalogBackend:
        if not isinstance(service, LossyProxy):
            return super().backend_through(service, backend)
        given = {**backend.properties, "dictionary.port": f"{service.port}"}
        return type(backend)(backend.name, given, backend.io)


@pytest.fixture
def proxy() -> Iterator[LossyProxy]:
    with LossyProxy(echoing()) as made:
        yield made


def fresh(kind: type[CatalogBackend]) -> CatalogBackend:
    properties = {"warehouse": f"memory://kit/{uuid4().hex}"}
    return kind("test", properties, FileIO(Plugins.installed(), properties))


def fixtures(kind: type[CatalogBackend], proxy: LossyProxy) -> dict[str, Any]:
    service = CALLS if issubclass(kind, OverAService) else proxy if issubclass(kind, OverASocket) else None
    return {"backend": lambda _: fresh(kind), "service": lambda _: service}


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_a_broken_catalog_is_rejected_by_the_check_for_it(mutant: Mutant, proxy: LossyProxy) -> None:
    said = ""
    for _ in range(_TRIES):
        said = rejection(Suite, mutant.check, fixtures(mutant.plugin, proxy))
        if mutant.cause in said:
            return
    assert said, f"{mutant} passes {mutant.check}"
    assert mutant.cause in said


@pytest.mark.parametrize("kind", [DictionaryBackend, WholeDictionaryBackend, OverAService])
def test_a_right_catalog_passes_every_check(kind: type[CatalogBackend], proxy: LossyProxy) -> None:
    assert failures(Suite, fixtures(kind, proxy)) == []


def test_a_catalog_with_a_time_out_passes_the_check_of_a_silent_service(proxy: LossyProxy) -> None:
    assert rejection(Suite, SILENT, fixtures(OverASocket, proxy)) == ""
    assert proxy.count == 2  # both calls met the silence


def test_there_is_a_broken_catalog_for_every_check() -> None:
    about_the_plugin = {"test_the_plugin_states_its_contract_number"}  # test_contract_numbers.py
    assert {name for name, _ in checks(CatalogSuite)} - about_the_plugin == {mutant.check for mutant in MUTANTS}


def test_every_check_states_what_to_look_at_when_it_fails() -> None:
    for name, check in checks(CatalogSuite):
        assert "If this fails" in (check.__doc__ or ""), name
