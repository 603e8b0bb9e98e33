"""Authentication at the service: one module for each method."""

from icefield_rest.auth.authenticator import Authenticator, Post, Unsigned

__all__ = ["Authenticator", "Post", "Unsigned"]
