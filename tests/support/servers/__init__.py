"""The real servers that tests run against, each on loopback: one module a server, with its pytest fixtures."""
