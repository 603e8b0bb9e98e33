"""The columns of data files as the columns of a scan."""
