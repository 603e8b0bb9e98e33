"""A server of the Model Context Protocol: tools that read catalogs and tables."""
