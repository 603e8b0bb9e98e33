"""Reading: the row groups and column chunks that a request needs, decoded to Arrow; statistics of row groups."""
