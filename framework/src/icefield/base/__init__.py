"""The lowest layer: small modules that every other package of the kernel may use."""
