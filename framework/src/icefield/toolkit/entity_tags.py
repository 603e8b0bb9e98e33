"""Entity tags of stores that speak HTTP."""

from __future__ import annotations


def unquoted_etag(etag: str | None) -> str | None:
    """An entity tag without the quotes of the HTTP header; None for an empty one and for a weak one.

    Stores give the same tag with quotes in a header and without them in a listing. A weak tag (``W/"…"``) may stay
    while bytes change.
    """
    if not etag or etag.startswith("W/"):
        return None
    return etag.strip('"') or None
