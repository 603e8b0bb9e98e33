"""The choice of manifests of a snapshot to rewrite."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from icefield.engine import Head, ManifestFilter
from icefield.errors import InvalidArgument, UnsupportedFeature
from icefield.expressions import AlwaysTrue, BooleanExpression, bind
from icefield.manifest import ManifestContent, ManifestFile
from icefield.metadata import TableMetadata

GroupKey = tuple[int, ManifestContent]
"""Manifests of different specs or contents are never mixed."""

_ALL: Final = AlwaysTrue()


@dataclass(frozen=True, slots=True)
class ManifestChoice:
    """The choice of manifests by spec, by a filter that their files may match, and by a predicate.

    ``cluster_by`` names the partition fields that sort their entries first; the other fields of the spec follow.
    """

    spec_id: int | None = None
    row_filter: BooleanExpression = _ALL
    predicate: Callable[[ManifestFile], bool] | None = None
    cluster_by: tuple[str, ...] = ()

    def check(self, metadata: TableMetadata) -> None:
        """Check the choice against the table.

        Raises ``InvalidArgument`` for a missing spec, and for a missing or repeated partition field. Raises
        ``UnsupportedFeature`` for a named spec with a transform that this version cannot write.
        """
        specs = [one for one in metadata.partition_specs if self.spec_id in (None, one.spec_id)]
        if not specs:
            known = sorted(one.spec_id for one in metadata.partition_specs)
            raise InvalidArgument(f"the table has no partition spec {self.spec_id!r}; it has {known}")
        names = {field.name for spec in specs for field in spec.fields}
        for name in self.cluster_by:
            if name not in names:
                raise InvalidArgument(
                    f"manifests are clustered by partition fields, and '{name}' is none; there are {sorted(names)}",
                    column=name,
                )
        if len(set(self.cluster_by)) < len(self.cluster_by):
            raise InvalidArgument(f"a partition field comes twice in {list(self.cluster_by)}")
        if self.spec_id is not None and not _is_known(metadata, self.spec_id):
            raise UnsupportedFeature(
                f"partition spec {self.spec_id} has a transform that this version cannot write, so that its manifests "
                "stay as they are"
            )

    def groups(self, head: Head) -> Mapping[GroupKey, tuple[ManifestFile, ...]]:
        """The manifests of a head to rewrite, by spec and content, in the order of the list."""
        found: dict[GroupKey, list[ManifestFile]] = {}
        for manifest in self._matching(head):
            spec_id = manifest.partition_spec_id
            if self.spec_id not in (None, spec_id) or not _is_known(head.metadata, spec_id):
                continue
            if self.predicate is None or self.predicate(manifest):
                found.setdefault((spec_id, manifest.content), []).append(manifest)
        return {key: tuple(manifests) for key, manifests in found.items()}

    def _matching(self, head: Head) -> tuple[ManifestFile, ...]:
        if isinstance(self.row_filter, AlwaysTrue) or head.manifest_list is None:
            return head.manifests
        schema = head.metadata.schema()
        pruning = ManifestFilter(head.metadata, head.io, schema, bind(schema, self.row_filter))
        chosen = np.concatenate([pruning.choose(head.manifest_list, content) for content in ManifestContent])
        return tuple(head.manifests[position] for position in np.sort(chosen).tolist())


def _is_known(metadata: TableMetadata, spec_id: int) -> bool:
    return all(field.is_known for field in metadata.spec_by_id(spec_id).fields)
