"""A deterministic simulator of commits: a model of the store, several writers, and everything that may go wrong."""
