"""Broken key services are rejected by the intended check of the kit, and a right one passes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack
from typing import Any, ClassVar

import pytest
import servers.vault
from icefield.abc import KeyService
from icefield_testing import KeyServiceSuite, LossyProxy
from kit_checks import checks, failures, rejection, words
from mutants import Mutant
from mutants.key_services import MUTANTS
from mutants.key_services.right import RightKeyService
from servers.vault import Vault

Given = Callable[[type[KeyService]], dict[str, Callable[[str], Any]]]


class Suite(KeyServiceSuite):
    """The suite for the key services of this test."""

    check_seconds = 20.0
    damages = 32
    credentials: ClassVar = ({"token": "{secret}"},)
    time_out_properties: ClassVar[Mapping[str, str]] = {"seconds": "0.3"}
    silence_seconds = 2.0

    def key_service_at(self, port: int, key_service: KeyService, properties: Mapping[str, str]) -> KeyService:
        return self.with_properties(key_service, {"port": str(port), **properties})


@pytest.fixture
def given(vault: Vault) -> Iterator[Given]:
    """The fixtures of the suite for a class."""
    with ExitStack() as stack:

        def fixtures(kind: type[KeyService]) -> dict[str, Callable[[str], Any]]:
            properties = {"port": str(vault.port), "token": servers.vault.TOKEN}
            denied: Collection[str] = ("forbidden",)
            return {
                "key_service": lambda _: kind(properties),
                "key_id": lambda _: "orders",
                "other_key_id": lambda _: "others",
                "denied_key_ids": lambda _: denied,
                "rotate": lambda _: lambda key_id: vault.keys[key_id].rotate(),
                "service_port": lambda _: vault.port,
                "server_tls": lambda _: None,
                "proxy": lambda _: stack.enter_context(LossyProxy(vault.port)),
            }

        yield fixtures


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_a_broken_key_service_is_rejected_with_words_that_name_the_cause(mutant: Mutant, given: Given) -> None:
    said = words(lambda: rejection(Suite, mutant.check, given(mutant.plugin)), mutant.cause)
    assert mutant.cause in said, said


def test_every_check_has_a_mutant() -> None:
    elsewhere = {"test_the_plugin_states_its_contract_number"}
    assert {name for name, _ in checks(Suite)} - elsewhere == {mutant.check for mutant in MUTANTS}


def test_a_right_key_service_passes_every_check(given: Given) -> None:
    patient = type("Suite", (Suite,), {"check_seconds": 120.0})
    assert failures(patient, given(RightKeyService)) == []
