"""The name nodes and gateways that the configuration names: credentials go only to these.

A location comes from a table, and a table is not trusted.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from icefield.errors import InvalidArgument
from icefield.toolkit import Host, authorities_named, endpoint_of, split_host

RPC_PORT: Final = 8020
WEB_PORTS: Final = {"webhdfs": 9870, "swebhdfs": 9871}
_FILES: Final = ("core-site.xml", "hdfs-site.xml")
_KERBEROS: Final = ("hdfs.kerberos-keytab", "hdfs.kerberos-principal", "hdfs.kerberos_ticket")


def uses_kerberos(properties: Mapping[str, str]) -> bool:
    """Whether the properties, or Hadoop's own settings, ask for tickets."""
    asked = setting(properties, "hadoop.security.authentication")
    return any(properties.get(name) for name in _KERBEROS) or asked.lower() == "kerberos"


def is_name_node(properties: Mapping[str, str], authority: str, own: str) -> bool:
    """Whether the configuration names a name node or name service; ``own`` is the default of locations without one."""
    found = [own]
    found += [place.authority for place in authorities_named(properties, frozenset({"hdfs"}))]
    found += setting(properties, "dfs.nameservices").split(",")
    found.append(setting(properties, "fs.defaultFS").partition("://")[2].partition("/")[0])
    return _with_port(authority) in {_with_port(one.strip()) for one in found if one.strip()}


def is_gateway(properties: Mapping[str, str], scheme: str, host: Host) -> bool:
    """Whether the configuration names a WebHDFS server under this scheme.

    A server that is named only with TLS may not be used without it.
    """
    named = set()
    for place in authorities_named(properties, frozenset(WEB_PORTS)):
        if place.authority:
            name, port = split_host(place.authority, "://".join(place[:2]))
            named.add((place.scheme, Host(name, port or WEB_PORTS[place.scheme])))
    if (scheme, host) in named:
        return True
    own = default_gateway(properties, scheme)
    return host == own and (scheme == "swebhdfs" or not any(known == "swebhdfs" for known, _ in named))


def default_gateway(properties: Mapping[str, str], scheme: str) -> Host | None:
    """The server of locations that name none, by ``webhdfs.host`` and ``webhdfs.port``."""
    given = properties.get("webhdfs.host")
    if not given:
        return None
    bracketed = f"[{given}]" if given.count(":") > 1 and not given.startswith("[") else given
    host = endpoint_of(f"http://{bracketed}", "webhdfs.host").host
    string = properties.get("webhdfs.port")
    try:
        port = int(string) if string else host.port or WEB_PORTS[scheme]
    except ValueError:
        port = 0
    if not 0 < port < 65_536:
        raise InvalidArgument(f"webhdfs.port is a whole number from 1 to 65535, not {string!r}")
    return Host(host.name, port)


def setting(properties: Mapping[str, str], name: str) -> str:
    """A setting of Hadoop, from the property ``hadoop.<name>`` or else from its files; empty if there is none."""
    own = properties.get(f"hadoop.{name}")
    if own is not None:
        return own
    home = os.environ.get("HADOOP_HOME")
    folder = (
        properties.get("hdfs.config-dir")
        or os.environ.get("HADOOP_CONF_DIR")
        or (f"{home}/etc/hadoop" if home else None)
    )
    return _settings_in(folder).get(name, "") if folder else ""


@lru_cache(maxsize=8)
def _settings_in(folder: str) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for name in _FILES:
        try:
            root = ElementTree.parse(Path(folder) / name).getroot()
        except (OSError, ElementTree.ParseError):  # hdfs-native reports errors of these files
            continue
        for entry in root.iter("property"):
            found[(entry.findtext("name") or "").strip()] = (entry.findtext("value") or "").strip()
    return found


def _with_port(authority: str) -> Host:
    host = split_host(authority, f"hdfs://{authority}")
    return Host(host.name, host.port or RPC_PORT)
