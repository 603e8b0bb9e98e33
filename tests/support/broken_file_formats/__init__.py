"""File formats that are broken on purpose, for the tests of the kit."""
