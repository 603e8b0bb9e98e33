"""A line on a terminal, by rich: a spinner, a bar, the amount and the elapsed time."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, Task, TextColumn
from rich.table import Column
from rich.text import Text

from icefield_progress.texts import amount, elapsed


class RichLine:
    """A line with the name of the work, the finished and (if known) total amount, and the elapsed time."""

    def __init__(self) -> None:
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            _Bar(bar_width=20),
            TextColumn("{task.fields[text]}", markup=False, table_column=Column(no_wrap=True)),
            console=Console(stderr=True, force_terminal=True, highlight=False),
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._progress.add_task("", total=None, text="")
        self._progress.start()

    def draw(self, what: str, done: int, total: int | None, seconds: float) -> None:
        """See ``DrawnLine``."""
        text = f"{amount(done, total)} {elapsed(seconds)}".strip()
        self._progress.update(self._task, description=what, completed=done, total=total, text=text)
        self._progress.refresh()

    def close(self) -> None:
        """Wipe it away."""
        self._progress.stop()


class _Bar(BarColumn):
    """A progress bar, if the total amount is known."""

    def render(self, task: Task) -> Text:  # type: ignore[override]  # any renderable will do
        return Text() if task.total is None else super().render(task)  # type: ignore[return-value]


def new_line() -> RichLine:
    """A line that is about to be drawn."""
    return RichLine()
