"""Checks of names that look alike: each is another file, is listed to the letter, and is deleted alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from icefield.abc import FileSystem, FileSystemAbility, PutMode
from icefield.errors import FileExists, FileMissing, IcefieldError, InvalidArgument, LocationRefused

from icefield_testing.file_systems.base import FileSystemChecks
from icefield_testing.names import PATHS, SPELLINGS, spelled

_PATTERNS: Final = ("x", "x*", "[x]", "x?")
_PATHS: Final = (PATHS["dot files"], PATHS["marks of a URL"])
_NAMES: Final = [name for group in (*SPELLINGS.values(), *_PATHS, _PATTERNS) for name in group]
_NEIGHBOURS: Final = ("folder/a", "folder/b/c", "folders", "fold", "[f]older", "f*")


class SpellingChecks(FileSystemChecks):
    """Checks of names that a careless plugin takes for one."""

    def test_names_that_look_alike_are_different_files(self, file_system: FileSystem, root: str) -> None:
        """If this fails, a name is brought to another Unicode form, to lower case, or stripped, decoded, globbed or
        cut at a ``?`` or ``#`` on its way, and one file replaces another: send each location as it is."""
        names = self._held_apart(root, _NAMES)
        kept, wrong = [], []
        for name in names:
            with suppress(InvalidArgument, LocationRefused):
                file_system.put(f"{root}/put/{name}", name.encode(), PutMode.OVERWRITE)
                kept.append(name)
        for name in kept:
            try:
                with file_system.open_output(f"{root}/streamed/{name}") as sink:
                    sink.write(name.encode())
            except FileExists:
                wrong.append(name)
        for folder in ("put", "streamed"):
            wrong += [name for name in kept if self.raw_get(f"{root}/{folder}/{name}") != name.encode()]
        assert not wrong, _story(kept, wrong, "was written elsewhere")
        wrong = [name for name in kept if self._read(file_system, f"{root}/put/{name}") != name.encode()]
        assert not wrong, _story(kept, wrong, "was read from elsewhere")
        wrong = [name for name in kept if file_system.stat(f"{root}/put/{name}").size != len(name.encode())]
        assert not wrong, _story(kept, wrong, "has the size of another")

    def test_a_name_with_a_slash_at_its_end_is_no_file_without_it(self, file_system: FileSystem, root: str) -> None:
        """If this fails, a slash at the end of a location is cut off, as by fsspec, and ``f/`` stands for the file
        ``f``: keep the slash, or refuse the location with one of Icefield's errors."""
        there, new = f"{root}/d/f", f"{root}/d/new"
        self.raw_put(there, b"f")
        with suppress(IcefieldError):
            found = file_system.open_input(f"{there}/").read()
            raise AssertionError(f"open_input of 'f/' reads {found!r} from the file f")
        with suppress(IcefieldError):
            raise AssertionError(f"stat of 'f/' finds {file_system.stat(f'{there}/')}")
        with suppress(IcefieldError):
            assert file_system.stat_many([f"{there}/"]) == [None], "stat_many of 'f/' finds the file f"

        def write(location: str) -> None:
            with file_system.open_output(location) as sink:
                sink.write(b"other")

        changes: dict[str, Callable[[str], object]] = {
            "delete_many": lambda location: file_system.delete_many([location]),
            "put(OVERWRITE)": lambda location: file_system.put(location, b"other", PutMode.OVERWRITE),
            "open_output": write,
        }
        if FileSystemAbility.ATOMIC_CREATE in file_system.abilities:
            changes["put(CREATE)"] = lambda location: file_system.put(location, b"other", PutMode.CREATE)
        if FileSystemAbility.ATOMIC_RENAME in file_system.abilities:
            changes["rename"] = lambda location: file_system.rename(location, f"{root}/d/renamed")
        for what, change in changes.items():
            for location in (there, new):
                with suppress(IcefieldError):
                    change(f"{location}/")
            assert self.raw_get(there) == b"f", f"{what} of 'f/' changes the file f"
            assert self.raw_get(new) is None, f"{what} of 'new/' makes the file new"

    def test_a_listing_gives_names_to_the_letter(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``list_files`` decodes, normalises or hides a name, such as that of a dot file: files that are
        listed cannot be opened or deleted under the name, and hidden ones stay forever."""
        self.needs(file_system, FileSystemAbility.LIST)
        names = self._held_apart(root, _NAMES)
        for name in names:
            self.raw_put(f"{root}/d/{name}", b"x")
        found = [info.location.removeprefix(f"{root}/d/") for info in file_system.list_files(f"{root}/d")]
        _compare(names, found, "list_files")
        shallow = [
            info.location.removeprefix(f"{root}/d/") for info in file_system.list_files(f"{root}/d", shallow=True)
        ]
        _compare({name.partition("/")[0] + "/" * ("/" in name) for name in names}, shallow, "list_files(shallow)")

    def test_a_file_has_nothing_below_it(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``list_files`` takes its argument for a prefix of names, or gives the folder itself: it gives
        files below a folder alone."""
        self.needs(file_system, FileSystemAbility.LIST)
        self.raw_put(f"{root}/d/file", b"x")
        for shallow in (False, True):
            found = [info.location for info in file_system.list_files(f"{root}/d/file", shallow=shallow)]
            assert found == [], f"listed below a file: {found}"

    def test_deleting_a_name_deletes_no_other(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``delete_many`` takes a name for a folder, a prefix or a pattern, and deletes files of other
        names: delete files alone, each by its whole name."""
        names = self._held_apart(root, _NEIGHBOURS)
        for name in names:
            self.raw_put(f"{root}/d/{name}", b"x")
        for name in ("folder", "folder/b", "fol", "?olders", "[fg]olders", "fold*"):
            with suppress(IcefieldError):  # a folder may be refused
                file_system.delete_many([f"{root}/d/{name}"])
            gone = [each for each in names if self.raw_get(f"{root}/d/{each}") is None]
            assert not gone, f"delete_many of {name!r} deleted {len(gone)} of {len(names)} other files: {gone}"

    # -- helpers

    def _read(self, file_system: FileSystem, location: str) -> bytes | None:
        try:
            return file_system.open_input(location).read()
        except FileMissing:
            return None

    def _held_apart(self, root: str, names: Iterable[str]) -> list[str]:
        """The names that the store itself keeps, and keeps apart."""
        kept: list[str] = []
        for name in names:
            taken = self.raw_get(f"{root}/apart/{name}") is not None
            with suppress(Exception):  # the store itself may refuse a name
                if not taken:
                    self.raw_put(f"{root}/apart/{name}", name.encode())
                    kept.append(name)
        return [name for name in kept if self.raw_get(f"{root}/apart/{name}") == name.encode()]


def _compare(names: Iterable[str], found: Iterable[str], what: str) -> None:
    wanted, given = set(names), set(found)
    lost, made_up = sorted(wanted - given), sorted(given - wanted)
    assert not lost, (
        f"{what} lacks {len(lost)} of {len(wanted)} names, such as {spelled(lost[0])}; "
        f"names that nobody wrote: {', '.join(map(spelled, made_up)) or 'none'}"
    )
    assert not made_up, f"{what} gives names that nobody wrote: {', '.join(map(spelled, made_up))}"


def _story(names: list[str], wrong: list[str], what: str) -> str:
    return f"{len(set(wrong))} of {len(names)} names: {spelled(wrong[0])} {what}" if wrong else ""
