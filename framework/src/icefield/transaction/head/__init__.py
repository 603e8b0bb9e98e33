"""The head of a branch: its files, and the files that a name, a partition or a filter chooses."""
