"""Changes of single rows: finds the rows of each file that go, and the rows that replace them."""
