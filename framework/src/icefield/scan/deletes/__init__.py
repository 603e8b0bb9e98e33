"""Row-level deletes (position deletes, deletion vectors, equality deletes), read once per scan and applied as masks."""
