"""Checks of secrets, and of tables with similar locations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from icefield.abc import CommitStrategy, FileSystem, FileSystemAbility, PutMode
from icefield.errors import IcefieldError

from icefield_testing.fault_model import KINDS, walk
from icefield_testing.planted_secrets import PlantedSecret
from icefield_testing.service_faults import RequestFaults
from icefield_testing.strategies.held import HeldUpChecks

_UNKNOWN: Final = {"test.password": "{secret}"}
_SIMILAR: Final = (
    ("Orders", "orders"),
    ("caf\u00e9", "cafe\u0301"),
    ("a b", "a%20b"),
    ("a.b", "a/b"),
    ("a_b", "a.b"),
    ("end", "end "),
    ("t1", "t10"),
)


class ShowingChecks(HeldUpChecks):
    """Checks of everything that a strategy shows, and of the key under which it keeps a table."""

    def test_no_secret_of_the_properties_is_shown(
        self, file_system: FileSystem, location: str, service: RequestFaults | None
    ) -> None:
        """If this fails, a ``repr``, an error or its cause, a log, a result or a file shows a credential: show names of
        properties and not their values, and raise ``from None`` where a library's error repeats a value."""
        for number, given in enumerate(self.credentials):
            secret = PlantedSecret()
            with secret.watching_logs("a strategy"):
                strategy = None
                try:
                    strategy = self.strategy_with(secret.planted(given), file_system, f"{location}/own-{number}")
                except Exception as error:
                    secret.check_error("a strategy that is built", error)
                if strategy is not None:
                    self._use(strategy, secret, f"{location}/own-{number}")
        for place in self.fault_places(file_system, service):
            for step in walk(place.faults, KINDS["stays down"], f"stays down at {place.name}"):
                at = f"{location}/shown-{place.name}-{step.number}"
                base = self.create(file_system, at)
                secret = PlantedSecret()
                strategy = place.build(at)
                strategy.properties.update(secret.planted(_UNKNOWN))
                self.pointer(strategy)
                with secret.watching_logs("a commit"):
                    proposal = self.changed(file_system, base, "n", "1")
                    with step:
                        self._show(strategy, secret, "a commit", self.outcome(strategy, base, proposal))
            secret = PlantedSecret()
            strategy = place.build(at)
            strategy.properties.update(secret.planted(_UNKNOWN))
            with secret.watching_logs("a strategy"):
                for down in (True, False):
                    place.faults.arm(KINDS["stays down"](0) if down else lambda _: None)
                    self._use(strategy, secret, at)
                    place.faults.disarm()
            for found in self.files(file_system, at):
                secret.check(found, file_system.open_input(found).read().decode("latin-1"))

    def test_tables_at_similar_locations_are_different_tables(self, file_system: FileSystem, location: str) -> None:
        """If this fails, two tables have one key: the strategy lowers the case of a location, normalizes, decodes or
        strips it, or joins its parts with a character that a part may have."""
        for number, (left, right) in enumerate(_SIMILAR):
            one, other = f"{location}/similar-{number}/{left}/x", f"{location}/similar-{number}/{right}/x"
            if not self._are_different_files(file_system, one, other):
                continue
            first = self.create(file_system, one)
            told = f"tables at '{left}' and '{right}'"
            assert self.pointer(self.strategy(file_system, other)) is None, f"{told} are one table"
            second = self.create(file_system, other)
            assert self.pointer(self.strategy(file_system, one)) == first, f"{told} are one table"
            self.strategy(file_system, one).drop()
            assert self.pointer(self.strategy(file_system, other)) == second, f"{told} are dropped together"

    def _use(self, strategy: CommitStrategy, secret: PlantedSecret, location: str) -> None:
        calls: dict[str, Callable[[], object]] = {
            "`credentials()`": strategy.credentials,
            "load": lambda: self.pointer(strategy),
            "a creation": lambda: self.outcome(strategy, None, self.new_table(location)),
            "drop": lambda: self.dropped(strategy),
        }
        for name, call in calls.items():
            try:
                shown: object = call()
            except Exception as error:
                shown = error
            self._show(strategy, secret, name, shown)

    def _show(self, strategy: CommitStrategy, secret: PlantedSecret, place: str, outcome: object) -> None:
        if isinstance(outcome, BaseException):
            secret.check_error(place, outcome)
        else:
            secret.check(f"the result of {place}", outcome)
        assert secret.value not in f"{strategy!r}{strategy}", "the secret of a property is in the `repr`"

    def _are_different_files(self, file_system: FileSystem, one: str, other: str) -> bool:
        """Whether the store keeps both names, and apart."""
        try:
            file_system.put(f"{one}/probe", b"1", PutMode.OVERWRITE)
            file_system.put(f"{other}/probe", b"2", PutMode.OVERWRITE)
            if FileSystemAbility.ATOMIC_RENAME in file_system.abilities:
                file_system.rename(f"{other}/probe", f"{other}/renamed")
            return file_system.open_input(f"{one}/probe").read() == b"1"
        except IcefieldError:
            return False
