"""The plugin's hooks."""

from __future__ import annotations

from icefield import Provider, hookimpl


@hookimpl
def icefield_file_systems() -> list[Provider]:
    """Provide HDFS by its native client and by WebHDFS."""
    return [
        Provider(
            "hdfs", "icefield_hdfs.hdfs_file_system:HdfsFileSystem", contract=(1, 1), uri_schemes=("hdfs", "viewfs")
        ),
        Provider(
            "webhdfs",
            "icefield_hdfs.web_file_system:WebHdfsFileSystem",
            contract=(1, 1),
            uri_schemes=("webhdfs", "swebhdfs"),
        ),
    ]
