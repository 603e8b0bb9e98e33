"""Row-level deletes: position deletes, deletion vectors and equality deletes, read once a scan and applied as masks."""
