"""Planning of scans: from a snapshot and a filter to the files to read."""
