"""The changes of views that the kit tries with faults."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import uuid4

from icefield.abc import CatalogBackend, CurrentView, TableName, ViewCatalog

from icefield_testing.catalogs.attempts import Attempt


class CreateView(Attempt):
    """The creation of a view."""

    commits = True

    @classmethod
    def is_for(cls, backend: CatalogBackend) -> bool:
        return isinstance(backend, ViewCatalog)

    def open(self, through: CatalogBackend) -> None:
        super().open(through)
        self.base: CurrentView | None = None
        self.proposal = self.checks._view_creation(self.backend, self.name)

    def act(self) -> None:
        if self.views(self.through).commit_view(self.name, self.base, self.proposal) is None:
            raise AssertionError("the change of a view says that another came first, and nobody else was there")

    def is_done(self) -> bool | None:
        return self.names_are(set(), {self.name})

    def undo(self) -> None:
        self.views(self.backend).drop_view(self.name)

    def views(self, backend: CatalogBackend) -> ViewCatalog:
        assert isinstance(backend, ViewCatalog)
        return backend

    def listed(self) -> Sequence[TableName]:
        return self.views(self.backend).list_views(self.space).items

    def loads(self, name: TableName) -> bool:
        return self.views(self.backend).load_view(name) is not None


class _OfAView(CreateView):
    def prepare(self) -> None:
        super().prepare()
        self.checks._new_view(self.views(self.backend), self.name)


class ChangeView(_OfAView):
    """A change of a view."""

    def open(self, through: CatalogBackend) -> None:
        self.through, self.mark = through, uuid4().hex
        self.base = self.checks._loaded_view(self.backend, self.name)
        self.proposal = self.checks._view_change(self.base, self.mark)

    def is_done(self) -> bool | None:
        return self.mark in self.checks._loaded_view(self.backend, self.name).metadata.properties

    def undo(self) -> None:
        """The next writer changes the view again."""
        self.open(self.backend)
        self.act()


class RenameView(_OfAView):
    """A rename of a view."""

    commits = False

    def open(self, through: CatalogBackend) -> None:
        self.through = through

    def act(self) -> None:
        self.views(self.through).rename_view(self.name, self.other)

    def is_done(self) -> bool | None:
        return self.names_are({self.name}, {self.other})

    def undo(self) -> None:
        self.views(self.backend).rename_view(self.other, self.name)


class DropView(RenameView):
    """A drop of a view."""

    def act(self) -> None:
        self.views(self.through).drop_view(self.name)

    def is_done(self) -> bool | None:
        return self.names_are({self.name}, set())

    def undo(self) -> None:
        self.checks._new_view(self.views(self.backend), self.name)
