"""Buckets and keys: ``s3://bucket/path``, and the valid names of buckets.

A bucket is a part of the path at the endpoint, or a prefix of the endpoint's host name. Two kinds of names make the SDK
ask another host: access points (``arn:aws:s3:region:account:accesspoint:name``), which name their region, and Outposts.
They are accepted only where the configuration names them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from icefield.errors import FileMissing, LocationRefused
from icefield.toolkit import authorities_named, credentials_refused, split_location

SCHEMES: Final = frozenset({"s3", "s3a", "s3n"})
# Old buckets have capital letters, underscores and up to 255 characters.
_BUCKET: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?!\.)){0,254}(?<!\.)")
_ACCESS_POINT: Final = re.compile(
    r"arn:aws[a-z-]*:(?:s3|s3-object-lambda|s3-outposts):[a-z0-9-]*:[0-9]{12}:(?:outpost:[A-Za-z0-9-]{1,63}:)?"
    r"accesspoint:[A-Za-z0-9.-]{1,63}"
)
_ON_OUTPOST: Final = "--op-s3"


def split_key(location: str, properties: Mapping[str, str]) -> tuple[str, str]:
    """Bucket and key, to the letter; the key of a whole bucket is empty.

    Raises ``LocationRefused`` for an invalid bucket name, and for an access point that the configuration does not name.
    """
    _, bucket, key = split_location(location)
    if not bucket:
        raise FileMissing(f"{location} is no file: a file is s3://bucket/path", location=location)
    access_point = _ACCESS_POINT.fullmatch(bucket) is not None
    if not access_point and _BUCKET.fullmatch(bucket) is None:
        raise LocationRefused(f"{location} is refused: '{bucket}' is no name of a bucket", location=location)
    if (access_point or bucket.endswith(_ON_OUTPOST)) and not any(
        place.authority == bucket for place in authorities_named(properties, SCHEMES)
    ):
        raise credentials_refused(location, f"the access point '{bucket}'", "the warehouse or location.allowed-roots")
    return bucket, key
