"""Frames of Daft as data files."""

from __future__ import annotations

from typing import Any

from icefield.writing import DataFile

from icefield_frames.libraries import library
from icefield_frames.worker_writes import PartWriter


def write(frame: Any, writer: PartWriter) -> list[DataFile]:
    """Write a frame: by tasks of Ray if Daft runs on Ray, else by the threads of this process."""
    writer.check(frame.schema().to_pyarrow_schema())
    if library("daft", "write_on_workers", "runners").get_or_infer_runner_type() == "ray":
        found: list[DataFile] = library("ray", "write_on_workers", own="icefield_frames.ray_sources").write(
            frame.to_ray_dataset(), writer
        )
        return found
    return writer.write(frame.to_arrow_iter())
