"""The metadata tables, with one module for each kind."""
