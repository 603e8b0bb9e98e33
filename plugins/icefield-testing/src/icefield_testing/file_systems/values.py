"""Checks of a file system as a value (built from properties, pickled, printed), and a state machine of random calls."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from icefield.abc import FileSystem, FileSystemAbility, PutMode
from icefield.errors import FileExists, FileMissing

from icefield_testing.file_systems.base import FileSystemChecks


class ValueChecks(FileSystemChecks):
    """Checks of copies, of the output of ``repr``, and of random sequences of calls."""

    def test_a_pickled_copy_reads_and_writes(self, file_system: FileSystem, root: str) -> None:
        """If this fails, the file system holds state besides its properties; open connections lazily."""
        copy = self.copy(file_system)
        copy.put(f"{root}/f", b"from the copy", PutMode.OVERWRITE)
        assert file_system.open_input(f"{root}/f").read() == b"from the copy"
        assert type(copy) is type(file_system)
        assert copy.abilities == file_system.abilities

    def test_its_repr_shows_no_property(self, file_system: FileSystem) -> None:
        """If this fails, a credential among the properties would end up in logs."""
        secret = uuid4().hex
        made = type(file_system)({**file_system.properties, "test.secret": secret})
        assert secret not in repr(made)
        assert secret not in str(made)

    def test_any_sequence_of_calls_behaves_like_a_dictionary(self, file_system: FileSystem, root: str) -> None:
        """If this fails, Hypothesis prints the shortest sequence of calls that breaks the contract."""
        machine = _machine(file_system, root)
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=15, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
            ),
        )


def _machine(file_system: FileSystem, root: str) -> type[RuleBasedStateMachine]:
    """A state machine that compares the file system with a dictionary."""
    names = st.sampled_from(["a", "b", "d/a", "d/e/f"])
    bodies = st.just(b"") | st.binary(max_size=50)  # so that every run writes empty files, too
    creates = FileSystemAbility.ATOMIC_CREATE in file_system.abilities
    renames = FileSystemAbility.ATOMIC_RENAME in file_system.abilities
    lists = FileSystemAbility.LIST in file_system.abilities

    class Machine(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.base = f"{root}/{uuid4().hex}"
            self.model: dict[str, bytes] = {}
            self.touched: set[str] = set()

        @rule(name=names, data=bodies)
        def overwrite(self, name: str, data: bytes) -> None:
            self.touched.add(name)
            file_system.put(f"{self.base}/{name}", data, PutMode.OVERWRITE)
            self.model[name] = data

        @rule(name=names, data=bodies)
        def create(self, name: str, data: bytes) -> None:
            if not creates:
                return
            self.touched.add(name)
            if name in self.model:
                with pytest.raises(FileExists):
                    file_system.put(f"{self.base}/{name}", data, PutMode.CREATE)
            else:
                file_system.put(f"{self.base}/{name}", data, PutMode.CREATE)
                self.model[name] = data

        @rule(source=names, new=names)
        def rename(self, source: str, new: str) -> None:
            if not renames or source == new:
                return
            self.touched |= {source, new}
            if source in self.model and new not in self.model:
                file_system.rename(f"{self.base}/{source}", f"{self.base}/{new}")
                self.model[new] = self.model.pop(source)
            else:
                with pytest.raises((FileExists, FileMissing)):
                    file_system.rename(f"{self.base}/{source}", f"{self.base}/{new}")

        @rule(name=names)
        def delete(self, name: str) -> None:
            self.touched.add(name)
            file_system.delete_many([f"{self.base}/{name}"])
            self.model.pop(name, None)

        @invariant()
        def files_are_as_written(self) -> None:
            # Each is read when it was touched, and again at the end: a store takes long for each request.
            self.read(self.touched)
            self.touched.clear()
            if lists:
                found = {info.location: info.size for info in file_system.list_files(self.base)}
                assert found == {f"{self.base}/{name}": len(data) for name, data in self.model.items()}

        def teardown(self) -> None:
            self.read(self.model)

        def read(self, names: Iterable[str]) -> None:
            for name in names:
                if name in self.model:
                    assert file_system.open_input(f"{self.base}/{name}").read() == self.model[name]

    return Machine
