"""Runs of jobs with the tables that they read and write, for OpenLineage."""
