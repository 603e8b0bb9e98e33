"""Large files in S3, Google Cloud Storage, Azure storage and HDFS: the plugins next to the plain fsspec clients.

The servers run on this machine, so that the times compare the work of the clients.
"""

from __future__ import annotations

import os
import sys
from itertools import count
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from adlfs import AzureBlobFileSystem
from gcsfs.core import GCSFileSystem
from harness import compare, main
from hdfs_native.fsspec import HdfsFileSystem as NativeHdfsFileSystem
from icefield.abc import FileSystem
from icefield_adls.adls_file_system import AdlsFileSystem
from icefield_gcs.gcs_file_system import GcsFileSystem
from icefield_hdfs.hdfs_file_system import HdfsFileSystem
from icefield_s3.s3_file_system import S3FileSystem
from s3fs import S3FileSystem as PlainS3FileSystem
from servers.azure import serve_azure
from servers.gcs import serve_gcs
from servers.hdfs import serve_hdfs
from servers.s3 import SECRET, serve_s3

FLOOR = 1 / 1.2
PIECE = 1024 * 1024
DATA = os.urandom(64 * PIECE)


def write_in_pieces(sink: Any) -> None:
    with sink:
        for start in range(0, len(DATA), PIECE):
            sink.write(DATA[start : start + PIECE])


def read_in_pieces(source: Any) -> None:
    total = 0
    while piece := source.read(PIECE):
        total += len(piece)
    source.close()
    assert total == len(DATA)


def workloads(name: str, ours: FileSystem, root: str, peer: Any, place: str) -> None:
    location, path = f"{root}/ours", f"{place}/theirs"
    numbers = count()  # a stream is to a new name
    compare(
        f"{name}: write 64 MiB",
        lambda: write_in_pieces(ours.open_output(f"{location}-{next(numbers)}")),
        lambda: write_in_pieces(peer.open(path, "wb")),
        floor=FLOOR,
    )
    compare(
        f"{name}: read 64 MiB in pieces",
        lambda: read_in_pieces(ours.open_input(f"{location}-0")),
        lambda: read_in_pieces(peer.open(path, "rb")),
        floor=FLOOR,
    )
    compare(
        f"{name}: read 64 MiB at once",
        lambda: ours.open_input(f"{location}-0").read(),
        lambda: peer.cat_file(path),
        floor=FLOOR,
    )


def run() -> None:
    with serve_s3() as s3:
        options = {"endpoint_url": s3.url, "client_kwargs": {"region_name": "us-east-1"}, "use_listings_cache": False}
        simple = PlainS3FileSystem(key="test", secret=SECRET, **options)
        workloads("s3", S3FileSystem(s3.properties), f"s3://{s3.bucket}", simple, s3.bucket)
    with serve_gcs() as gcs:
        plain = GCSFileSystem(token="anon", endpoint_url=gcs.url, use_listings_cache=False)
        workloads("gcs", GcsFileSystem(gcs.properties), f"gs://{gcs.bucket}", plain, gcs.bucket)
    with serve_azure() as azure:
        peer = AzureBlobFileSystem(connection_string=azure.connection_string, use_listings_cache=False)
        workloads("adls", AdlsFileSystem(azure.properties), f"az://{azure.container}", peer, azure.container)
    with serve_hdfs() as hdfs:
        native = NativeHdfsFileSystem(host="127.0.0.1", port=hdfs.rpc_port)
        workloads("hdfs", HdfsFileSystem(), hdfs.url, native, "")


if __name__ == "__main__":
    main(run)
