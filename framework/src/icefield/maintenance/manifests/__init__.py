"""Manifests rewritten: their entries clustered by partition, in files of about the target size."""

from icefield.maintenance.manifests.choice import ManifestChoice
from icefield.maintenance.manifests.rewrite import RewriteManifests, RewriteManifestsResult

__all__ = ["ManifestChoice", "RewriteManifests", "RewriteManifestsResult"]
