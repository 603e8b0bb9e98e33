"""Changes of rows from snapshot to snapshot: planned, read and matched."""
