"""WebHDFS and HttpFS: ``webhdfs://host:9870/path`` over HTTP, ``swebhdfs://host:9871/path`` over HTTPS.

The properties are in the plugin's README. A delegation token goes only to servers that the configuration names.
"""

from __future__ import annotations

from icefield.errors import InvalidArgument
from icefield.toolkit import Host, credentials_refused, is_true, split_host, whole_number

from icefield_hdfs.client import Client
from icefield_hdfs.hadoop_file_system import HadoopFileSystem, authority_of
from icefield_hdfs.named import WEB_PORTS, default_gateway, is_gateway
from icefield_hdfs.web import WebClient
from icefield_hdfs.web_requests import Requests, ServerAddress


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
        if authority:
            host, port = split_host(authority, location)
            address = ServerAddress(scheme == "swebhdfs", host, port or WEB_PORTS[scheme])
        else:
            own = default_gateway(properties, scheme)
            if own is None:
                raise InvalidArgument(f"{location} names no host: write {scheme}://host:port/path, or set webhdfs.host")
            address = ServerAddress(scheme == "swebhdfs", own.name, own.port or WEB_PORTS[scheme])
        identity = self._identity()
        if "delegation" in identity and not is_gateway(properties, scheme, Host(address.host, address.port)):
            what = f"{address.host}:{address.port}, reached by {scheme}"
            raise credentials_refused(location, what, "webhdfs.host and webhdfs.port")
        requests = Requests(
            timeout=whole_number(properties, "webhdfs.timeout", 60, 1),
            ca_file=properties.get("webhdfs.ca-file"),
        )
        return WebClient(address, requests, identity)

    def check(self, location: str) -> None:
        self.client(location)

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
