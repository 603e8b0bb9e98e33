"""Writing: Arrow data as a file stores it, gathered into row groups, and what pyarrow's writer leaves out."""
