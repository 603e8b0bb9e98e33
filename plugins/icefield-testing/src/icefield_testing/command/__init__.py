"""The command ``icefield kit``: it runs the suites that a class must pass, and prints a report."""
