"""Views: their metadata, and changes of it made of small updates."""

from icefield.metadata.views.view_metadata import (
    ViewHistoryEntry,
    ViewMetadata,
    ViewRepresentation,
    ViewVersion,
    decode_view_metadata,
    encode_view_metadata,
)
from icefield.metadata.views.view_updates import (
    AddViewSchema,
    AddViewVersion,
    AssertViewUUID,
    AssignViewUUID,
    RemoveViewProperties,
    SetCurrentViewVersion,
    SetViewLocation,
    SetViewProperties,
    UpgradeViewFormatVersion,
    ViewRequirement,
    ViewUpdate,
    apply_view_updates,
    new_view_metadata,
    view_creation_updates,
)

__all__ = [
    "AddViewSchema",
    "AddViewVersion",
    "AssertViewUUID",
    "AssignViewUUID",
    "RemoveViewProperties",
    "SetCurrentViewVersion",
    "SetViewLocation",
    "SetViewProperties",
    "UpgradeViewFormatVersion",
    "ViewHistoryEntry",
    "ViewMetadata",
    "ViewRepresentation",
    "ViewRequirement",
    "ViewUpdate",
    "ViewVersion",
    "apply_view_updates",
    "decode_view_metadata",
    "encode_view_metadata",
    "new_view_metadata",
    "view_creation_updates",
]
