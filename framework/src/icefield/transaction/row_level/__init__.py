"""Changes of single rows: which rows of which files go, and what comes in their place."""
