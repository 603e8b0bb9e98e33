"""The hosts of storage accounts: which are Azure's own, and how the two of an account are known to be one."""

from __future__ import annotations

import re
from typing import Final

_NAME: Final = r"[a-z0-9]{3,24}"
_CLOUDS: Final = ("core.windows.net", "core.usgovcloudapi.net", "core.chinacloudapi.cn", "core.cloudapi.de")
_AZURE: Final = re.compile(
    # An account, read-access replicas included; an account with an endpoint of a DNS zone; OneLake, global, of a region
    # or of a workspace.
    rf"{_NAME}(?:-secondary)?\.(?:blob|dfs)\.(?:{'|'.join(map(re.escape, _CLOUDS))})"
    rf"|{_NAME}\.z[0-9]{{1,2}}\.(?:blob|dfs)\.storage\.azure\.net"
    r"|(?:[a-z0-9]+-)*onelake\.(?:blob|dfs)\.fabric\.microsoft\.com"
    r"|[0-9a-f]{32}\.z[0-9a-f]{2}\.(?:blob|dfs)\.fabric\.microsoft\.com"
)


_USUAL_PORT: Final = ":443"


def is_azure(host: str) -> bool:
    """Whether a host is one of Azure's own, by the whole of its name."""
    return _AZURE.fullmatch(host) is not None


def blob_host(host: str) -> str:
    """Return the host of an account's blob service for either of its hosts, so that hosts of one account are equal.

    The default port of Azure's hosts is left out.
    """
    blob = host.lower().replace(".dfs.", ".blob.", 1)
    usual = blob.removesuffix(_USUAL_PORT)
    return usual if is_azure(usual) else blob
