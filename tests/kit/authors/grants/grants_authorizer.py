"""An authorizer of the REST server that asks a file of grants, and the grants of other plugins."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from authors.grants.grants_hookspecs import Grant
from icefield import Plugins
from icefield.errors import InvalidArgument
from icefield_rest_server import Authorizer, Principal


def grants_of(properties: Mapping[str, str], plugins: Plugins) -> list[Grant]:
    """All grants: a line of the file is a client, an operation and a name, such as ``alice loadTable db.t``."""
    if "grants.file" not in properties:
        raise InvalidArgument("the authorizer grants needs the property grants.file")
    words = [line.split() for line in Path(properties["grants.file"]).read_text("utf-8").splitlines()]
    given = [Grant(client, operation, tuple(name[0].split(".")) if name else ()) for client, operation, *name in words]
    return given + [grant for _, grant in plugins.records("icefield_grants", Grant)]


def authorizer(properties: Mapping[str, str]) -> Authorizer:
    """Allow the operations that a grant covers."""
    grants = grants_of(properties, Plugins.installed())

    def allows(principal: Principal | None, operation: str, name: tuple[str, ...]) -> bool:
        client = None if principal is None else principal.name
        return any(grant.client == client and grant.covers(operation, name) for grant in grants)

    return allows
