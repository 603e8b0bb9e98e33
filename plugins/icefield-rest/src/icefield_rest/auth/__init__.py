"""Authentication at the service: one module for each method."""
