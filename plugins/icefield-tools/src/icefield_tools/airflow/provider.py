"""What Airflow lists about the package: the type of its connections. Imports nothing."""

from typing import Any


def provider_info() -> dict[str, Any]:
    """The description of the package, by Airflow's schema of providers."""
    return {
        "package-name": "icefield-tools",
        "name": "Icefield",
        "description": "Iceberg tables in DAGs.",
        "connection-types": [
            {"connection-type": "icefield", "hook-class-name": "icefield_tools.airflow.hook.IcefieldHook"}
        ],
    }
