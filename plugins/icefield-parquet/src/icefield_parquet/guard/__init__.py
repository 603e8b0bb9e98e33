"""Guards: the checks that stand between damaged or hostile files and pyarrow, and typed errors in place of its own."""
