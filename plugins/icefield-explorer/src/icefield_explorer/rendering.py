"""Pages from templates that escape all values, with the headers of a strict content security policy."""

from __future__ import annotations

import re
from hashlib import sha256
from importlib.resources import files
from typing import Any, Final
from urllib.parse import quote, urlencode

import pyarrow as pa
from icefield import __version__
from icefield.toolkit import without_credentials, without_userinfo
from icefield_report.formats import count, printable, short
from icefield_report.page import ENVIRONMENT as REPORT
from icefield_rest_server import Answer, PageRequest
from jinja2 import ChoiceLoader, PackageLoader
from markupsafe import Markup, escape

_POLICY: Final = (
    "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "Content-Type": "text/html; charset=utf-8",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}


def _hidden(value: str, name: str) -> str:
    """The value of a property, without credentials."""
    return without_credentials(without_userinfo(value), {name: value})


def _place(location: str, most: int) -> str:
    """A location without a password, on one line."""
    return short(without_userinfo(location), most)


def text_of(value: Any) -> str:
    """An Arrow value as text. Arrow writes times that Python's own types cannot hold."""
    try:
        return str(value.as_py())
    except (ValueError, OverflowError, pa.ArrowException):
        return str(pa.repeat(value, 1).to_string(skip_new_lines=True)[1:-1])


def _lines(string: str, most: int) -> Markup:
    """A string of several lines without other control characters, cut at the end and escaped."""
    kept = "\n".join(printable(line) for line in string[:most].splitlines())
    return escape(f"{kept}\N{HORIZONTAL ELLIPSIS}" if len(string) > most else kept)


def _code(string: str) -> Markup:
    """Markup of a string, with the parts between backticks as code."""
    return Markup(re.sub("`([^`]*)`", r"<code>\1</code>", str(escape(string))))


def span(milliseconds: int) -> str:
    """A time in its largest whole unit, such as 5 days."""
    for unit, length in (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000)):
        if milliseconds >= length and milliseconds % length == 0:
            return count(milliseconds // length, unit)
    return f"{milliseconds / 1000:,.1f} s"


_LOADERS: Final = ChoiceLoader([PackageLoader("icefield_explorer"), PackageLoader("icefield_report")])
_TEMPLATES: Final = REPORT.overlay(loader=_LOADERS)
_TEMPLATES.filters = {
    **REPORT.filters,
    "code": _code,
    "hidden": _hidden,
    "lines": _lines,
    "place": _place,
    "span": span,
}
_STYLE: Final = b"\n".join(
    files(package).joinpath("templates", name).read_bytes()
    for package, name in (("icefield_report", "style.css"), ("icefield_explorer", "explorer.css"))
)
_STYLE_NAME: Final = f"style-{sha256(_STYLE).hexdigest()[:12]}.css"


class Links:
    """The addresses of pages, relative to where they are served."""

    def __init__(self, root: str) -> None:
        self.root = root

    def __call__(self, page: str, levels: tuple[str, ...] = (), **query: Any) -> str:
        """The address of a page about an object; values of the query that are None or empty are left out."""
        path = "/".join([self.root, page, *(quote(level, safe="") for level in levels)])
        given = {key: value for key, value in query.items() if value not in (None, "")}
        return f"{path}?{urlencode(given)}" if given else path

    @property
    def style(self) -> str:
        """The address of the style sheet, which changes with its contents."""
        return f"{self.root}/{_STYLE_NAME}"


def page(request: PageRequest, template: str, status: int = 200, *, refresh: bool = False, **values: Any) -> Answer:
    """A page of a template. With ``refresh``, the browser loads it again after two seconds."""
    given = {"link": Links(request.root), "access": request.access, "version": __version__, **values}
    body = _TEMPLATES.get_template(template).render(given)
    return Answer(status, body.encode("utf-8", "replace"), {**_HEADERS, **({"Refresh": "2"} if refresh else {})})


def style_sheet(name: str) -> Answer | None:
    """The style sheet; None for another name."""
    if name != _STYLE_NAME:
        return None
    headers = {**_HEADERS, "Content-Type": "text/css; charset=utf-8", "Cache-Control": "max-age=31536000, immutable"}
    return Answer(200, _STYLE, headers)


def redirect(address: str) -> Answer:
    """Lead the browser to another page."""
    return Answer(303, b"", {**_HEADERS, "Location": address})
