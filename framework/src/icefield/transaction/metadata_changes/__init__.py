"""Changes of metadata alone: columns, partitioning, order, properties, location, format version and statistics."""
