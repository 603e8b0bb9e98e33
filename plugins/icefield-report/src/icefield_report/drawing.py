"""Figures as SVG that is part of a page: text stays text, and colours follow the page's theme.

Matplotlib is given colours that stand for roles; in the SVG they become variables of the page's style sheet, so that a
plot follows the light or dark theme of its reader.
"""

from __future__ import annotations

import io
import re
import threading
import xml.etree.ElementTree as ET
from collections.abc import Callable
from typing import Any, Final

import matplotlib
from icefield.toolkit import reset_after_fork
from matplotlib.figure import Figure

INK: Final = "#010203"
MUTED: Final = "#040506"
GRID: Final = "#070809"
SURFACE: Final = "#0a0b0c"
SERIES: Final = ("#0d0e0f", "#101112", "#131415", "#161718", "#191a1b", "#1c1d1e")
"""Colours of series that colour-blind readers can distinguish."""

_VARIABLES: Final = {
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    GRID: "var(--grid)",
    SURFACE: "var(--surface)",
    **{colour: f"var(--series-{number})" for number, colour in enumerate(SERIES, 1)},
}
_STYLE: Final[dict[Any, Any]] = {
    "svg.fonttype": "none",
    "text.parse_math": False,  # a "$" in a partition value starts no formula
    "text.usetex": False,
    "font.family": "DejaVu Sans",
    "font.size": 10.5,
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "axes.facecolor": "none",
    "axes.edgecolor": GRID,
    "axes.labelcolor": MUTED,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.formatter.useoffset": False,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "text.color": INK,
    "xtick.color": GRID,
    "ytick.color": GRID,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
    "legend.frameon": False,
    "legend.labelcolor": INK,
    "lines.solid_capstyle": "butt",
}
_SVG: Final = "http://www.w3.org/2000/svg"
_XLINK: Final = "{http://www.w3.org/1999/xlink}href"
_LOCK = threading.Lock()
"""Matplotlib's settings hold for the whole process."""


def _unlock() -> None:
    global _LOCK
    _LOCK = threading.Lock()


reset_after_fork(_unlock)

ET.register_namespace("", _SVG)
ET.register_namespace("xlink", "http://www.w3.org/1999/xlink")


def svg(name: str, title: str, description: str, width: float, height: float, draw: Callable[[Figure], None]) -> str:
    """Draw a figure of that many inches, and return it as an SVG element with a title and a description.

    ``name`` is unique in the page: the ids of the figure's elements begin with it.
    """
    settings = {**_STYLE, "svg.hashsalt": name}
    with _LOCK, matplotlib.rc_context(settings):
        figure = Figure(figsize=(width, height), layout="constrained")
        draw(figure)
        written = io.BytesIO()
        figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None})
    return _part_of_page(written.getvalue(), name, title, description)


def _part_of_page(written: bytes, name: str, title: str, description: str) -> str:
    root = ET.fromstring(written)
    for child in [child for child in root if child.tag.endswith("metadata")]:
        root.remove(child)
    for parent in [parent for parent in root if parent.tag.endswith("defs")]:
        for child in [child for child in parent if child.tag.endswith("style")]:
            parent.remove(child)
    root.set("stroke-linejoin", "round")  # as matplotlib's style element says
    used: set[str] = set()
    for element in root.iter():
        used.update(re.findall(r"#([\w-]+)", element.get(_XLINK, "") + " " + element.get("clip-path", "")))
    for element in root.iter():
        _conformed(element, name, used)
    for attribute in ("width", "height", "version"):
        root.attrib.pop(attribute, None)
    root.set("role", "img")
    root.set("class", "plot")
    root.set("aria-labelledby", f"{name}-title {name}-description")
    for place, (tag, text) in enumerate((("title", title), ("desc", description))):
        child = ET.Element(f"{{{_SVG}}}{tag}", {"id": f"{name}-{'title' if tag == 'title' else 'description'}"})
        child.text = text
        root.insert(place, child)
    return ET.tostring(root, encoding="unicode")


def _conformed(element: ET.Element, name: str, used: set[str]) -> None:
    """Prefix the ids that the figure refers to, remove other ids, and use the page's colours and font.

    Styles become attributes of presentation: a strict content security policy allows them.
    """
    own = element.attrib.pop("id", None)
    if own in used:
        element.set("id", f"{name}-{own}")
    if _XLINK in element.attrib:
        element.set(_XLINK, element.attrib[_XLINK].replace("#", f"#{name}-"))
    if "clip-path" in element.attrib:
        element.set("clip-path", element.attrib["clip-path"].replace("#", f"#{name}-"))
    style = element.attrib.pop("style", "")
    for colour, variable in _VARIABLES.items():
        style = style.replace(colour, variable)
    for part in filter(None, _without_font_family(style).split("; ")):
        key, _, value = part.partition(": ")
        element.set(key, value)


def _without_font_family(style: str) -> str:
    """A style with the font of the page, in the size that matplotlib wrote."""
    parts = [part.strip() for part in style.split(";") if part.strip()]
    kept = []
    for part in parts:
        if part.startswith("font:"):
            size = re.search(r"[\d.]+px", part)
            weight = "font-weight: 600; " if re.search(r"\b(bold|600|700)\b", part) else ""
            part = f"{weight}font-size: {size[0]}" if size else ""
        if part and not part.startswith("font-family"):
            kept.append(part)
    return "; ".join(kept)
