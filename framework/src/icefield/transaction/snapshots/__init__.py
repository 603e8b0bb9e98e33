"""A new snapshot: its manifests, its manifest list and its summary."""
