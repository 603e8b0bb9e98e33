"""Entity tags of stores that speak HTTP."""

from __future__ import annotations


def unquoted_etag(etag: str | None) -> str | None:
    """An entity tag without the quotes of the HTTP header; None for an empty or weak tag.

    Stores send the same tag with quotes in a header and without them in a listing. A weak tag (``W/"…"``) may stay
    the same while bytes change.
    """
    if not etag or etag.startswith("W/"):
        return None
    return etag.strip('"') or None
