"""The providers of hooks that plugins specify, found by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, TypeVar

from icefield.errors import MissingPlugin, PluginConflict
from icefield.metadata.spelling import was_meant
from icefield.plugins.hookspecs import Provider

if TYPE_CHECKING:
    from icefield.plugins.registry import PluginInfo

_Record = TypeVar("_Record")


class ProvidersByName(ABC):
    """The methods of ``Plugins`` for hooks that plugins specify."""

    @abstractmethod
    def listing(self) -> list[PluginInfo]: ...

    @abstractmethod
    def records(self, hook: str, record: type[_Record]) -> list[tuple[PluginInfo, _Record]]: ...

    @staticmethod
    @abstractmethod
    def load(plugin: PluginInfo, target: str, what: str) -> Any: ...

    def provided(self, hook: str, name: str, noun: str) -> Any:
        """Import the target of the ``Provider`` of that name, from a hook that a plugin specifies.

        ``noun`` says in errors what the hook provides: ``"authorizer"``. Raises ``MissingPlugin`` with the names that
        there are, ``PluginConflict`` and ``BrokenPlugin``.
        """
        given = self.records(hook, Provider)
        offers = [(info, provider) for info, provider in given if name in provider.names]
        if not offers:
            known = sorted({each for _, provider in given for each in provider.names})
            advice = f"installed are: {', '.join(known) or 'none'}{was_meant(name, known)}"
            raise MissingPlugin(f"no {noun} '{name}'; {advice}{self._failures()}", kind=noun, name=name)
        if len(offers) > 1:
            plugins = " and by ".join(str(info) for info, _ in offers)
            raise PluginConflict(f"{noun} '{name}' is provided by {plugins}; uninstall one of them", name=name)
        ((plugin, provider),) = offers
        return self.load(plugin, provider.target, f"{noun} '{name}'")

    def _failures(self) -> str:
        """The plugins that failed to load, as the end of a message."""
        return "".join(f"; plugin {info} failed to load: {info.error}" for info in self.listing() if info.error)
