"""Spans and metrics of operations, for OpenTelemetry."""
