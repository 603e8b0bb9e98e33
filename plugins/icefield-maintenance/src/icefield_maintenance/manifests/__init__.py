"""Rewriting manifests: their entries are clustered by partition, in files of about the target size."""

from icefield_maintenance.manifests.choice import ManifestChoice
from icefield_maintenance.manifests.rewrite import RewriteManifests, RewriteManifestsResult

__all__ = ["ManifestChoice", "RewriteManifests", "RewriteManifestsResult"]
