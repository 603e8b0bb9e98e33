"""The hooks of this plugin."""

from __future__ import annotations

from icefield import hookimpl


@hookimpl
def icefield_html(shown: object) -> str | None:
    """Draw an object for a notebook."""
    from icefield_notebook.views import drawn

    return drawn(shown)
