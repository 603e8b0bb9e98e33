"""What a catalog that keeps views is handed and gives: the current version of a view, and a change of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from icefield.metadata import ViewMetadata, ViewRequirement, ViewUpdate


@dataclass(frozen=True, slots=True)
class CurrentView:
    """A view at one version: where its metadata file is, and what it holds.

    ``properties`` are the view's own configuration, where a service hands one out.
    """

    location: str
    metadata: ViewMetadata = field(repr=False)
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class ViewProposal:
    """A change of a view that is to be committed.

    ``metadata`` is what shall be current. ``updates`` lead there from the base, or from nothing where the view is
    created, and ``requirements`` say what of the base they rely on: for a service that applies them itself.
    """

    metadata: ViewMetadata
    updates: tuple[ViewUpdate, ...] = ()
    requirements: tuple[ViewRequirement, ...] = ()
