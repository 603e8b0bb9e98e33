"""HDFS by its own protocol: ``hdfs://namenode:8020/path``, ``hdfs://nameservice/path``, ``viewfs://table/path``.

The properties are in the plugin's README.
"""

from __future__ import annotations

import os

from icefield.errors import InvalidArgument
from icefield.toolkit import credentials_refused, endpoint_of, whole_number

from icefield_hdfs.client import Client
from icefield_hdfs.hadoop_file_system import HadoopFileSystem, authority_of
from icefield_hdfs.named import is_name_node, uses_kerberos
from icefield_hdfs.native import HdfsSettings, client_of, config_of

_ATTEMPTS = "dfs.client.failover.max.attempts"


class HdfsFileSystem(HadoopFileSystem):
    """Files of HDFS, without a JVM. Properties begin with ``hdfs.``; Hadoop's own settings with ``hadoop.``."""

    def client(self, location: str) -> Client:
        return client_of(self.settings(location))

    def check(self, location: str) -> None:
        self.settings(location)

    def credentials(self, location: str) -> str | None:
        properties = self.properties
        if "hdfs.kerberos-keytab" in properties:
            return "the key of a Kerberos principal, of the property hdfs.kerberos-keytab"
        if "hdfs.kerberos_ticket" in properties:
            return "the Kerberos ticket of the property hdfs.kerberos_ticket"
        if "hdfs.user" in properties:
            return f"the user '{properties['hdfs.user']}' of the property hdfs.user, without a password"
        if "HADOOP_TOKEN_FILE_LOCATION" in os.environ:
            return "the delegation tokens that HADOOP_TOKEN_FILE_LOCATION names"
        if "HADOOP_USER_NAME" in os.environ:
            return f"the user '{os.environ['HADOOP_USER_NAME']}' of HADOOP_USER_NAME, without a password"
        return "the default Kerberos ticket where Hadoop's settings ask for one, else this process's own user"

    def settings(self, location: str) -> HdfsSettings:
        """How the name node of a location is reached."""
        properties = self.properties
        scheme, authority = authority_of(location)
        own = self._default_authority() if scheme == "hdfs" else ""
        if authority and scheme == "hdfs":  # a view leads where Hadoop's settings say
            if uses_kerberos(properties) and not is_name_node(properties, authority, own):
                raise credentials_refused(location, f"the name node '{authority}'", "hdfs.host")
        else:
            authority = authority or own
        config = config_of(properties)
        if ":" in authority:
            # There is only one name node: do not wait for minutes if its address is wrong.
            config.setdefault(_ATTEMPTS, "5")
        return HdfsSettings(
            f"{scheme}://{authority}",
            tuple(sorted(config.items())),
            properties.get("hdfs.config-dir"),
            properties.get("hdfs.user"),
            properties.get("hdfs.kerberos-principal"),
            properties.get("hdfs.kerberos-keytab"),
            _file(properties.get("hdfs.kerberos_ticket")),
            whole_number(properties, "hdfs.timeout", 120, 1),
        )

    def _default_authority(self) -> str:
        """The name node for locations that name none; empty leaves it to ``fs.defaultFS`` of Hadoop's settings."""
        host = self.properties.get("hdfs.host", "").removeprefix("hdfs://").rstrip("/")
        port = whole_number(self.properties, "hdfs.port", 0, 1)
        if port and not host:
            raise InvalidArgument("hdfs.port is set without hdfs.host")
        if host:
            endpoint_of(f"http://{host}", "hdfs.host")
        return f"{host}:{port}" if port and ":" not in host else host


def _file(ticket: str | None) -> str | None:
    if ticket is not None and not os.path.exists(ticket.removeprefix("FILE:")):
        raise InvalidArgument(f"hdfs.kerberos_ticket names no file: {ticket}; run kinit, or correct the path")
    return ticket
