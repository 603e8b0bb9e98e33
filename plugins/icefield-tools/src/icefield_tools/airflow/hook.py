"""The hook: the catalog of a connection, and what marks the commits of a task."""

from collections.abc import Mapping
from typing import Any

from airflow.sdk import BaseHook, Connection
from icefield import Catalog, IcefieldError, Table
from icefield.errors import InvalidArgument

from icefield_tools.catalogs import catalog_of
from icefield_tools.marks import is_marked


class IcefieldHook(BaseHook):
    """The catalog of a connection of the type ``icefield``.

    The extra of the connection has the properties of the catalog, and ``catalog`` names a configured one. Its host is
    the property ``uri``, its schema is ``warehouse``. Login and password are the property ``credential``; a password
    alone is ``token``. A property in the extra takes precedence.
    """

    conn_name_attr = "conn_id"
    default_conn_name = "icefield_default"
    conn_type = "icefield"
    hook_name = "Icefield"

    def __init__(self, conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.conn_id = conn_id

    def get_conn(self) -> Catalog:
        """The catalog, which all tasks of a process share."""
        return catalog_of_connection(self.get_connection(self.conn_id))

    def load_table(self, identifier: str) -> Table:
        """A table of the catalog. Raises ``NoSuchTable``."""
        return self.get_conn().load_table(identifier)

    def test_connection(self) -> tuple[bool, str]:
        """Whether the catalog answers, and a sentence about it, for the button of Airflow's pages."""
        try:
            number = len(self.get_conn().list_namespaces())
        except IcefieldError as error:
            return False, str(error)
        return True, f"the catalog answers; namespaces at its top: {number:,}"

    @staticmethod
    def marks(context: Mapping[str, Any]) -> dict[str, str]:
        """Properties of snapshots that name the task of a context. A retry of the task has the same.

        Pass them as ``snapshot_properties`` of a write.
        """
        task = context["ti"]
        return {
            "airflow.dag-id": task.dag_id,
            "airflow.run-id": task.run_id,
            "airflow.task-id": task.task_id,
            "airflow.map-index": str(task.map_index),
        }

    def is_written(self, table: Table, context: Mapping[str, Any], branch: str = "main") -> bool:
        """Whether a branch has a commit with the marks of the task: an earlier try of it was committed."""
        return is_marked(table, self.marks(context), branch)

    @classmethod
    def get_ui_field_behaviour(cls) -> dict[str, Any]:
        """The fields of a connection on Airflow's pages."""
        return {
            "hidden_fields": ["port"],
            "relabeling": {
                "host": "URI of the catalog",
                "schema": "Warehouse",
                "login": "Client id",
                "password": "Client secret or token",
                "extra": "Properties",
            },
            "placeholders": {
                "host": "https://catalog.example.com or sqlite:////data/catalog.db",
                "extra": '{"type": "rest"}',
            },
        }


def catalog_of_connection(connection: Connection) -> Catalog:
    """The catalog that a connection describes. Raises ``InvalidArgument`` for a nested value in its extra."""
    properties = {name: _text(connection.conn_id, name, value) for name, value in connection.extra_dejson.items()}
    name = properties.pop("catalog", None)
    fields = {"uri": connection.host, "warehouse": connection.schema}
    if connection.password:
        secret = f"{connection.login}:{connection.password}" if connection.login else connection.password
        fields["credential" if connection.login else "token"] = secret
    return catalog_of(name, {key: value for key, value in fields.items() if value} | properties)


def _text(connection: str, name: str, value: Any) -> str:
    """The value of a property: JSON has numbers and booleans, too."""
    if not isinstance(value, (str, int, float)):
        kind = "null" if value is None else "an array" if isinstance(value, list) else "an object"
        remedy = "the value of a property is a string, a number or a boolean"
        raise InvalidArgument(f"the extra of connection {connection!r} has {kind} for {name!r}: {remedy}")
    return str(value).lower() if isinstance(value, bool) else str(value)
