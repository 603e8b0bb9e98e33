"""How the service learns who asks: one module a way."""
