"""The values of a catalog's view methods: the current version of a view, and a proposed change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from icefield.metadata import ViewMetadata, ViewRequirement, ViewUpdate


@dataclass(frozen=True, slots=True)
class CurrentView:
    """A view at one version: the location of its metadata file, and the metadata.

    ``properties`` are the view's own configuration, if a service returns one.
    """

    location: str
    metadata: ViewMetadata = field(repr=False)
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class ViewProposal:
    """A change of a view that is to be committed.

    ``metadata`` is the new metadata. ``updates`` turn the base into it, or create it for a new view; ``requirements``
    are their preconditions on the base. A service that applies updates itself needs both.
    """

    metadata: ViewMetadata
    updates: tuple[ViewUpdate, ...] = ()
    requirements: tuple[ViewRequirement, ...] = ()
