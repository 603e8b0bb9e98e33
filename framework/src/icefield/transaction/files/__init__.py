"""Changes of files: appends, deletes, overwrites, rewrites and row deltas."""
