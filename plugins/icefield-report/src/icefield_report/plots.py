"""The plots of a report: each has a figure, a text alternative for screen readers, and its numbers as a table."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from icefield_report.drawing import INK, MUTED, SERIES, svg
from icefield_report.facts import Facts
from icefield_report.formats import count, share, short, size, time
from icefield_report.partitions import Ints

_WIDTH: Final = 4.6
_SMALL: Final = 9.5
"""The font size of legends and bar labels, readable on a telephone."""
_BARS: Final = 12
"""The most partitions or columns in a plot, the largest ones."""

_OPERATIONS: Final = ("append", "overwrite", "delete", "replace")
_FEWEST: Final = 8
"""The least number of bins in a histogram of sizes."""

_BINS: Final = 32
_FEW_VALUES: Final = 8
"""The most values for which the names of the first and last value have room."""

_AROUND_ONE: Final = 1000
"""The milliseconds to show before and after a single time."""

_LINES: Final = 120
"""The most manifests to draw."""


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot: ``summary`` describes it in a sentence."""

    name: str
    title: str
    summary: str
    svg: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def plots_of(facts: Facts, prefix: str, names: Collection[str] = ()) -> list[Plot]:
    """The plots that a table has something to show in: all of them, or those of some names.

    ``prefix`` begins the ids of their elements.
    """
    made = {
        "file-sizes": _file_sizes,
        "partitions": _partitions,
        "skew": _skew,
        "snapshots": _commits,
        "deletes": _delete_debt,
        "manifests": _clustering,
        "columns": _columns,
    }
    wanted = [make for name, make in made.items() if not names or name in names]
    return [plot for make in wanted if (plot := make(facts, prefix)) is not None]


def _file_sizes(facts: Facts, prefix: str) -> Plot | None:
    if not len(facts.sizes):
        return None
    every = np.concatenate([facts.sizes, facts.delete_sizes]).clip(1)
    low, high = int(np.log2(every.min())), int(np.log2(every.max()))
    low, high = max(0, min(low, high - _FEWEST // 2)), max(high, low + _FEWEST // 2)
    edges = 2.0 ** np.arange(low, high + 2)
    data, deletes = (np.histogram(each.clip(1), edges)[0] for each in (facts.sizes, facts.delete_sizes))
    labels = [size(edge) for edge in edges[:-1]]
    places = np.arange(len(labels))

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        axes.bar(places, data, 0.86, color=SERIES[0], label="data files")
        if deletes.any():
            axes.bar(places, deletes, 0.86, bottom=data, color=SERIES[1], label="delete files")
        target = np.log2(facts.target) - low - 0.5
        if -0.5 <= target <= len(labels) + 4:
            axes.axvline(target, color=INK, linewidth=1.2, linestyle=(0, (4, 3)), label=f"target {size(facts.target)}")
        if axes.get_legend_handles_labels()[0][1:]:
            _legend(figure, axes)
        step = -(-len(labels) // 8)
        axes.set_xticks(places[::step] - 0.5, labels[::step], rotation=30, ha="right", rotation_mode="anchor")
        axes.grid(visible=False, axis="x")
        axes.set_xlabel("size")
        axes.set_ylabel("files")
        _whole(axes.yaxis)

    median = size(float(np.median(facts.sizes)))
    if len(facts.sizes) == 1:
        summary = f"1 data file of {median}, {'' if facts.small_files else 'not '}below three quarters of the target."
    else:
        target_words = f"{share(facts.small_files, len(facts.sizes))} are below three quarters of the target"
        summary = f"{count(len(facts.sizes), 'data file')}, the middle one of {median}; {target_words}."
    rows = [
        (f"{size(edges[n])} to {size(edges[n + 1])}", f"{data[n]:,}", f"{deletes[n]:,}")
        for n in range(len(labels))
        if data[n] or deletes[n]
    ]
    return _plot(facts, prefix, "file-sizes", "File sizes", summary, draw, ("Size", "Data files", "Delete files"), rows)


def _partitions(facts: Facts, prefix: str) -> Plot | None:
    partitions = facts.partitions
    if not partitions.is_partitioned or not len(partitions) or not partitions.bytes.any():
        return None
    largest = np.argsort(-partitions.bytes, kind="stable")[:_BARS]
    labels = [partitions.label(place) for place in largest.tolist()]
    values = partitions.bytes[largest]

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        _bars(axes, labels, [(values, "data")], [size(value) for value in values.tolist()])
        _sizes(axes)

    ratio = float(partitions.bytes.max()) / max(1.0, float(np.median(partitions.bytes)))
    summary = (
        f"{count(len(partitions), 'partition')}; the largest is {ratio:,.1f} times the size of the middle one."
        + (f" Shown are the {len(labels)} largest." if len(labels) < len(partitions) else "")
    )
    rows = [
        (label, size(int(partitions.bytes[n])), f"{partitions.files[n]:,}", f"{partitions.rows[n]:,}")
        for label, n in zip(labels, largest.tolist(), strict=True)
    ]
    head = ("Partition", "Data", "Files", "Rows")
    return _plot(facts, prefix, "partitions", "Partitions by size", summary, draw, head, rows, bars=len(labels))


def _skew(facts: Facts, prefix: str) -> Plot | None:
    sizes = np.sort(facts.partitions.bytes)[::-1]
    total = int(sizes.sum())
    if not facts.partitions.is_partitioned or len(sizes) < 2 or not total:
        return None
    shares = np.concatenate(([0.0], np.cumsum(sizes) / total)) * 100
    ranks = np.arange(len(sizes) + 1) / len(sizes) * 100
    shown = np.unique(np.linspace(0, len(sizes), min(len(sizes) + 1, 101)).astype(int))

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        axes.plot([0, 100], [0, 100], color=MUTED, linewidth=1.2, linestyle=(0, (4, 3)), label="all of one size")
        axes.fill_between(ranks[shown], shares[shown], ranks[shown], color=SERIES[0], alpha=0.16, linewidth=0)
        axes.plot(ranks[shown], shares[shown], color=SERIES[0], linewidth=2, label="this table")
        axes.set_xlabel("partitions, the largest first (%)")
        axes.set_ylabel("data (%)")
        axes.set_xlim(0, 100)
        axes.set_ylim(0, 102)
        axes.legend(loc="lower right", fontsize=_SMALL)

    tenth = max(1, round(len(sizes) / 10))
    summary = (
        f"The largest {'partition' if tenth == 1 else count(tenth, 'partition')} of {len(sizes):,} "
        f"{'holds' if tenth == 1 else 'hold'} {share(float(sizes[:tenth].sum()), total)} of the data."
    )
    marks = sorted({max(1, round(len(sizes) * part)) for part in (0.01, 0.1, 0.25, 0.5, 0.75, 1.0)})
    rows = [(f"{n:,}", share(n, len(sizes)), share(float(sizes[:n].sum()), total)) for n in marks]
    head = ("Largest partitions", "Of all partitions", "Of all data")
    return _plot(facts, prefix, "skew", "Skew of partitions", summary, draw, head, rows)


def _commits(facts: Facts, prefix: str) -> Plot | None:
    commits = facts.commits
    if not len(commits.times):
        return None
    first, last = int(commits.times[0]), int(commits.times[-1])
    marks, words = _time_marks(first, last)
    bins = min(_BINS, len(commits.times))
    if first == last:  # one bar, in the middle
        first, last, bins = first - _AROUND_ONE, last + _AROUND_ONE, 3
    edges = np.linspace(first, last, bins + 1)
    operations = np.array(commits.operations)
    kinds = [*_OPERATIONS, "other"]
    names = np.where(np.isin(operations, _OPERATIONS), operations, "other")
    counts = {kind: np.histogram(commits.times[names == kind], edges)[0] for kind in kinds}
    counts = {kind: found for kind, found in counts.items() if found.any()}
    known = commits.total_files >= 0
    middles = (edges[:-1] + edges[1:]) / 2

    def draw(figure: Figure) -> None:
        grid = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2)) if known.any() else [figure.add_subplot()]
        axes = grid[0]
        below = np.zeros(bins)
        width = (last - first) / bins * 0.86
        for kind, found in counts.items():
            colour = SERIES[kinds.index(kind)]
            axes.bar(middles, found, width, bottom=below, color=colour, label=kind)
            below += found
        axes.set_ylabel("snapshots")
        _whole(axes.yaxis)
        _legend(figure, axes)
        if known.any():
            times, totals = _thinned(commits.times[known], commits.total_files[known])
            grid[1].step(times, totals, where="post", color=INK, linewidth=1.6)
            if len(times) == 1:
                grid[1].plot(times, totals, "o", color=INK)
            grid[1].set_ylim(bottom=0)
            grid[1].set_ylabel("data files")
            _whole(grid[1].yaxis)
        for each in grid:
            each.grid(visible=False, axis="x")
        grid[-1].set_xticks(marks, words)
        grid[-1].set_xlabel("time (UTC)")

    parts = ", ".join(count(int(found.sum()), kind, kind) for kind, found in counts.items())
    when = _span(int(commits.times[0]), int(commits.times[-1]), "from ", "at ")
    summary = f"{count(len(commits.times), 'snapshot')} {when}: {parts}."
    rows = [
        (_span(int(edges[n]), int(edges[n + 1])), *(f"{found[n]:,}" for found in counts.values()))
        for n in range(bins)
        if any(found[n] for found in counts.values())
    ]
    head = ("Time", *(kind.capitalize() for kind in counts))
    return _plot(facts, prefix, "snapshots", "Snapshots over time", summary, draw, head, rows)


def _delete_debt(facts: Facts, prefix: str) -> Plot | None:
    partitions = facts.partitions
    if not partitions.deletes.any():
        return None
    most = np.argsort(-partitions.deletes, kind="stable")[:_BARS]
    most = most[partitions.deletes[most] > 0]
    labels = [partitions.label(place) for place in most.tolist()]
    positions, keys = partitions.position_deletes[most], partitions.equality_deletes[most]
    shares = [share(int(partitions.deletes[n]), int(partitions.rows[n])) for n in most.tolist()]

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        series = [(positions, "rows by position"), (keys, "keys by equality")]
        _bars(axes, labels, [each for each in series if each[0].any()], shares)
        axes.set_xlabel("deletes, with their share of the rows")
        _whole(axes.xaxis)
        if positions.any() and keys.any():
            _legend(figure, axes)

    deleted, whole = int(partitions.deletes.sum()), int(partitions.rows.sum())
    files = sum(facts.delete_files)
    summary = (
        f"{count(files, 'delete file')} of {size(int(facts.delete_sizes.sum()))} "
        f"{'holds' if files == 1 else 'hold'} {count(deleted, 'delete')}, "
        f"{share(deleted, whole)} of {count(whole, 'row')}. Each scan reads and applies them."
    )
    rows = [
        (label, f"{positions[n]:,}", f"{keys[n]:,}", f"{partitions.delete_files[place]:,}", shares[n])
        for n, (label, place) in enumerate(zip(labels, most.tolist(), strict=True))
    ]
    head = ("Partition", "Positions", "Keys", "Delete files", "Of its rows")
    return _plot(facts, prefix, "deletes", "Delete debt", summary, draw, head, rows, bars=len(labels))


def _clustering(facts: Facts, prefix: str) -> Plot | None:
    found = facts.manifests
    if found.low is None or found.high is None or found.spans is None:
        return None
    low, high, spans = found.low, found.high, found.spans
    order = np.lexsort((high, low))
    drawn = order[np.unique(np.linspace(0, len(order) - 1, min(len(order), _LINES)).astype(int))]
    depth = found.depth

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        heights = np.arange(len(drawn))
        thickness = max(1.6, min(10.0, 170 / len(drawn)))
        axes.hlines(heights, low[drawn] - 0.45, high[drawn] + 0.45, color=SERIES[0], linewidth=thickness)
        axes.set_ylabel("manifests")
        axes.set_yticks([])
        axes.set_xlabel(f"values of {short(found.field, 30)}, in order")
        axes.set_xlim(-0.6, len(found.values) - 0.4)
        axes.set_ylim(-0.8, len(drawn) - 0.2)
        ends = sorted({0, (len(found.values) - 1) // 2, len(found.values) - 1})
        axes.set_xticks(ends, [short(found.values[place], 16) for place in ends])
        labels = axes.get_xticklabels()
        if len(found.values) > _FEW_VALUES:  # centred labels at the ends would stick out
            labels[0].set_horizontalalignment("left")
            labels[-1].set_horizontalalignment("right")

    middle = float(np.median(spans))
    summary = (
        f"A manifest spans {middle:,.0f} of {count(len(facts.partitions), 'partition')} (median); a filter on one "
        f"value of {short(found.field, 40)} reads {float(depth.mean()):,.1f} of {found.data:,} manifests on average."
    )
    limits = sorted({1, 2, 5, 10, 50, 100, 1000, 10**9})
    rows = []
    for lower, upper in zip([0, *limits[:-1]], limits, strict=True):
        number = int(np.count_nonzero((spans > lower) & (spans <= upper)))
        if number:
            label = f"{upper:,}" if upper - lower == 1 else f"{lower + 1:,} to {upper:,}"
            rows.append((label if upper < 10**9 else f"over {lower:,}", f"{number:,}"))
    head = ("Partitions spanned", "Manifests")
    return _plot(facts, prefix, "manifests", "Clustering of manifests", summary, draw, head, rows)


def _columns(facts: Facts, prefix: str) -> Plot | None:
    if not facts.column_bytes:
        return None
    shown = facts.column_bytes[:_BARS]
    total = sum(each[2] for each in facts.column_bytes)
    values = np.array([each[2] for each in shown], np.int64)

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        _bars(
            axes, [name for name, _, _ in shown], [(values, "size")], [share(each, total) for each in values.tolist()]
        )
        _sizes(axes)

    name, _, largest = shown[0]
    summary = f"{short(name, 40)} takes {share(largest, total)} of the {size(total)} that files state of columns."
    rows = [(name, kind, size(number), share(number, total)) for name, kind, number in facts.column_bytes[:100]]
    head = ("Column", "Type", "Size", "Of all")
    return _plot(facts, prefix, "columns", "Column sizes", summary, draw, head, rows, bars=len(shown))


def _plot(
    facts: Facts,
    prefix: str,
    name: str,
    title: str,
    summary: str,
    draw: Callable[[Figure], None],
    head: Sequence[str],
    rows: Sequence[tuple[str, ...]],
    bars: int | None = None,
) -> Plot:
    height = 3.3 if bars is None else 0.75 + 0.26 * max(3, bars)
    own = f"{prefix}-{name}"
    drawn = svg(own, f"{title} of {short(facts.name, 100)}", summary, _WIDTH, height, draw)
    return Plot(own, title, summary, drawn, tuple(head), tuple(rows))


def _bars(axes: Axes, labels: Sequence[str], series: Sequence[tuple[Ints, str]], ends: Sequence[str]) -> None:
    """Horizontal bars, the first on top, with a word at the end of each."""
    places = np.arange(len(labels))
    left = np.zeros(len(labels))
    for number, (values, label) in enumerate(series):
        axes.barh(places, values, 0.72, left=left, color=SERIES[number], label=label)
        left += values
    most = float(left.max()) or 1.0
    for place, (end, word) in enumerate(zip(left.tolist(), ends, strict=True)):
        axes.text(end + most * 0.012, place, word, va="center", fontsize=_SMALL, color=INK)
    axes.set_yticks(places, [short(label, 22) for label in labels])
    axes.tick_params(axis="y", length=0, labelcolor=INK)
    axes.set_xlim(0, most * 1.2)
    axes.set_ylim(max(2.5, len(labels) - 0.5), -0.5)
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)


def _sizes(axes: Axes) -> None:
    """Ticks of a horizontal axis at round sizes."""
    most = axes.get_xlim()[1]
    step = 2.0 ** np.floor(np.log2(max(most, 4) / 3))
    axes.set_xticks(np.arange(0, most, step))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: size(value)))


def _legend(figure: Figure, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside upper left",
        ncols=len(labels),
        fontsize=_SMALL,
        handlelength=1.1,
        columnspacing=1.2,
        borderaxespad=0.1,
    )


def _whole(axis: object) -> None:
    """Ticks at whole numbers, written short."""
    axis.set_major_locator(MaxNLocator(4, integer=True))  # type: ignore[attr-defined]
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))  # type: ignore[attr-defined]


def _thinned(times: Ints, totals: Ints) -> tuple[Ints, Ints]:
    """Sample at most 400 steps."""
    kept = np.unique(np.linspace(0, len(times) - 1, min(len(times), 400)).astype(int))
    return times[kept], totals[kept]


def _span(first: int, last: int, begins: str = "", alone: str = "") -> str:
    """Two times in words, or a single time if both look the same."""
    start, end = time(first), time(last)
    return f"{alone}{start}" if start == end else f"{begins}{start} to {end}"


def _time_marks(first: int, last: int) -> tuple[list[float], list[str]]:
    """At most three distinct times on an axis, as exact as their distance needs."""
    span = last - first
    form = (
        "%H:%M:%S.%f"
        if span < 10_000
        else "%H:%M:%S"
        if span < 600_000
        else "%m-%d %H:%M"
        if span < 3 * 86_400_000
        else "%Y-%m-%d"
    )
    digits = 3 if span < 1_000 else 1
    words = {_shown_time(each, form, digits): each for each in (first, (first + last) / 2, last)}
    return [*words.values()], [*words]


def _shown_time(milliseconds: float, form: str, digits: int) -> str:
    """A time; ``digits`` is the number of decimals of a second, if the form has any."""
    try:
        shown = (dt.datetime(1970, 1, 1) + dt.timedelta(milliseconds=milliseconds)).strftime(form)
    except OverflowError:
        return f"{milliseconds:.0f}"
    return shown[: digits - 6] if form.endswith("%f") else shown
