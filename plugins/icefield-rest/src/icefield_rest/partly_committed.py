"""Saying that a service left out a part of a commit, without making a failure of it."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterable
from contextlib import suppress

from icefield.errors import PartlyCommitted
from icefield.toolkit import callers_level

_log = logging.getLogger(__name__)
_MOST_NAMED = 5


def warn_partly_committed(catalog: str, table: tuple[str, ...], missing: Iterable[str]) -> None:
    """Log the missing parts of a commit, and warn with a ``PartlyCommitted`` that points to the user's code.

    The commit is made, so nothing is raised. If a filter turns warnings into errors, the message is only logged: the
    user would take an error for a failure and repeat the commit.
    """
    parts = tuple(missing)
    if not parts:
        return
    more = f" and {len(parts) - _MOST_NAMED} more" if len(parts) > _MOST_NAMED else ""
    warning = PartlyCommitted(
        f"the service of catalog '{catalog}' made the commit of table '{'.'.join(table)}', and its answer lacks "
        f"{', '.join(parts[:_MOST_NAMED])}{more}: it does not keep this; do not repeat the commit",
        table,
        parts,
    )
    _log.warning("%s", warning)
    with suppress(Warning):
        warnings.warn(warning, stacklevel=callers_level())
