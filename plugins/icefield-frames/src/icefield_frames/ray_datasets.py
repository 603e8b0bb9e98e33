"""Scans as datasets of Ray."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from icefield_frames.libraries import library, method_of

if TYPE_CHECKING:
    import ray.data


def to_ray(scan: Any, **options: Any) -> ray.data.Dataset:
    """The rows as a Ray dataset, whose tasks read the files.

    Columns and filters of the dataset's first steps reach the scan, which leaves out files and row groups. ``options``
    go to ``ray.data.read_datasource``. Raises ``MissingPlugin`` if Ray is not installed.
    """
    source = library("ray", "to_ray", own="icefield_frames.ray_sources").ScanDatasource(scan)
    found: ray.data.Dataset = library("ray", "to_ray", "data").read_datasource(source, **options)
    return found


TO_RAY = method_of(to_ray)
"""The service ``scan.to_ray``."""
