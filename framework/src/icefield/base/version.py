"""The version of the kernel."""

__version__ = "0.1.0"
