"""The line that shows progress, by rich: imported when something has taken long, since that takes a while too."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, Task, TextColumn, TimeElapsedColumn
from rich.table import Column
from rich.text import Text

from icefield_cli.output import clean


class ProgressLine:
    """A line with the name of the work, the finished and (if known) total amount, and the elapsed time."""

    def __init__(self, what: str) -> None:
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            _Bar(bar_width=20),
            _Number(),
            TimeElapsedColumn(),
            console=Console(stderr=True, force_terminal=True, highlight=False),
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._what = clean(what)
        self._task = self._progress.add_task(self._what, total=None)

    def start(self) -> None:
        """Begin to show it."""
        self._progress.start()

    def stop(self) -> None:
        """Wipe it away."""
        self._progress.stop()

    def update(self, step: str, done: int, total: int | None) -> None:
        """Show the progress of a step."""
        description = f"{self._what}: {clean(step)}" if step else self._what
        self._progress.update(self._task, description=description, completed=done, total=total)


class _Bar(BarColumn):
    """A progress bar, if the total amount is known."""

    def render(self, task: Task) -> Text:  # type: ignore[override]  # any renderable will do
        return Text() if task.total is None else super().render(task)  # type: ignore[return-value]


class _Number(TextColumn):
    """The finished amount, and the total amount."""

    def __init__(self) -> None:
        super().__init__("", table_column=Column(no_wrap=True))

    def render(self, task: Task) -> Text:
        if task.total is None:
            return Text(f"{task.completed:,.0f}" if task.completed else "")
        return Text(f"{task.completed:,.0f} of {task.total:,.0f}")
