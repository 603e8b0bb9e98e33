"""WebHDFS and HttpFS: ``webhdfs://host:9870/path`` over HTTP, ``swebhdfs://host:9871/path`` over HTTPS.

The properties are in the plugin's README.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from icefield.abc import is_true, whole_number
from icefield.errors import InvalidArgument

from icefield_hdfs.client import Client
from icefield_hdfs.hadoop_file_system import HadoopFileSystem, authority_of
from icefield_hdfs.web import WebClient
from icefield_hdfs.web_requests import Address, Requests

_PORTS = {"webhdfs": 9870, "swebhdfs": 9871}


class WebHdfsFileSystem(HadoopFileSystem):
    """Files of HDFS over its REST interface. Properties begin with ``webhdfs.``."""

    def client(self, location: str) -> Client:
        scheme, authority = authority_of(location)
        properties = self.properties
        if is_true(properties, "webhdfs.kerberos"):
            raise InvalidArgument(
                "webhdfs.kerberos: tickets are not sent over HTTP; give a delegation token in webhdfs.token, or use "
                "hdfs:// locations, which take tickets"
            )
        host, port = _split(authority, location)
        if not host:
            host, port = properties.get("webhdfs.host", ""), whole_number(properties, "webhdfs.port", 0, 1)
        if not host:
            raise InvalidArgument(f"{location} names no host: write {scheme}://host:port/path, or set webhdfs.host")
        address = Address(scheme == "swebhdfs", host, port or _PORTS[scheme])
        requests = Requests(
            timeout=whole_number(properties, "webhdfs.timeout", 60, 1),
            ca_file=properties.get("webhdfs.ca-file"),
        )
        return WebClient(address, requests, self._identity())

    def credentials(self, location: str) -> str | None:
        identity = self._identity()
        if "delegation" in identity:
            return "the delegation token of the property webhdfs.token"
        user = identity.get("user.name")
        return f"the user '{user}', without a password" if user else "none: the server's default user"

    def _identity(self) -> dict[str, str]:
        properties = self.properties
        token = properties.get("webhdfs.token")
        if token:
            return {"delegation": token}
        user = properties.get("webhdfs.user") or properties.get("hdfs.user")
        proxied = properties.get("webhdfs.proxy-user")
        return {**({"user.name": user} if user else {}), **({"doas": proxied} if proxied else {})}


def _split(authority: str, location: str) -> tuple[str, int]:
    """Host and port of an authority; 0 for a port that is not given."""
    try:
        parts = urlsplit(f"//{authority}")
        return parts.hostname or "", parts.port or 0
    except ValueError as error:
        raise InvalidArgument(f"{location} names no host and port: {error}") from error
