"""Commits: the state of a table, and the retry loop for all changes."""

from typing import TYPE_CHECKING

from icefield.base.lazy_names import lazy_names

if TYPE_CHECKING:
    from icefield.commit.loop import NO_LOOK as NO_LOOK
    from icefield.commit.loop import Build as Build
    from icefield.commit.loop import commit_table as commit_table
    from icefield.commit.loop import holds as holds
    from icefield.commit.loop import snapshots_of as snapshots_of
    from icefield.commit.loop import tell_conflict as tell_conflict
    from icefield.commit.loop import tell_made as tell_made
    from icefield.commit.proposals import change_of as change_of
    from icefield.commit.proposals import creation_of as creation_of
    from icefield.commit.retry_policy import RetryPolicy as RetryPolicy
    from icefield.commit.settling import Change as Change
    from icefield.commit.settling import settle as settle
    from icefield.commit.state import TableHandle as TableHandle
    from icefield.commit.state import TableState as TableState
    from icefield.commit.state import current_of as current_of
    from icefield.commit.state import is_newest as is_newest
    from icefield.commit.state import is_permanent as is_permanent
    from icefield.commit.state import load_table as load_table
    from icefield.commit.written_files import WrittenFiles as WrittenFiles
    from icefield.commit.written_files import discard as discard
    from icefield.commit.written_files import discard_unexposed as discard_unexposed

__getattr__, __dir__ = lazy_names(__name__)
