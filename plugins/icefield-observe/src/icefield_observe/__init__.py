"""Listeners that tell other systems of the operations of catalogs: OpenTelemetry and OpenLineage."""
