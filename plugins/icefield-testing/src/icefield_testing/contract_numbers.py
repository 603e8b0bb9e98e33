"""The check that a plugin states the versions of the contract that its class fulfils."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from icefield import Plugins


def check_contract_number(plugins: Plugins, kind: str, implementation: type) -> None:
    """Fail if a provider of this kind provides the class without a contract; skip if no plugin provides the class."""
    found = [each for each in plugins.providers(kind) if _names(each.target, implementation)]
    if not found:
        pytest.skip(f"no installed plugin provides {implementation.__name__}")
    for provider in found:
        assert provider.contract is not None, (
            f"the Provider of {provider.target} states no contract: give contract=(lowest, highest), the versions of "
            f"the contract that the class fulfils; that of this kernel is {implementation.contract}"  # type: ignore[attr-defined]
        )


def _names(target: str, implementation: type) -> bool:
    """Whether a target is the class. Modules of other packages are not imported for this."""
    module, _, attribute = target.partition(":")
    if module.partition(".")[0] != implementation.__module__.partition(".")[0]:
        return False
    found: Any = getattr(import_module(module), attribute, None)
    return found is implementation
