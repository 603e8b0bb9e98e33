"""The strategy that a policy asks for, among the strategies of plugins."""

from __future__ import annotations

from icefield import Plugins
from icefield.engine import BUFFER_BYTES
from icefield.errors import BrokenPlugin, InvalidArgument
from icefield.metadata import TableMetadata

from icefield_maintenance.compaction.policy import RewriteDataPolicy
from icefield_maintenance.compaction.strategies.ordering import Ordering, OrderingRequest
from icefield_maintenance.hookspecs import CompactionStrategy


def chosen_strategy(policy: RewriteDataPolicy, metadata: TableMetadata, plugins: Plugins) -> Ordering:
    """The order of the rows.

    Raises ``InvalidArgument`` for an unknown strategy, for options of another strategy and for columns that the
    strategy cannot use; ``PluginConflict`` for a strategy of two plugins, ``BrokenPlugin`` if it cannot be loaded.
    """
    known = plugins.records("icefield_compaction_strategies", CompactionStrategy)
    names = sorted({record.name for _, record in known})
    if policy.strategy not in names:
        raise InvalidArgument(f"a strategy is one of {', '.join(names) or 'none'}, not {policy.strategy!r}")
    noun = "compaction strategy"
    plugin, record = plugins.chosen("icefield_compaction_strategies", CompactionStrategy, policy.strategy, noun)
    what = f"{noun} '{record.name}'"
    for option, given in (("sort_order", policy.sort_order is not None), ("zorder_columns", policy.zorder_columns)):
        if given and option not in record.takes:
            takers = " or ".join(sorted({each.name for _, each in known if option in each.takes}))
            raise InvalidArgument(f"{option} goes with the strategy {takers}, not {record.name}")
    held_bytes = BUFFER_BYTES // policy.max_concurrent_groups
    make = plugins.load(plugin, record.target, what)
    found = make(OrderingRequest(metadata, policy.sort_order, policy.zorder_columns, held_bytes))
    if not isinstance(found, Ordering):
        raise BrokenPlugin(f"{what} of plugin {plugin} makes no Ordering, but {found!r}", plugin=plugin.name)
    return found
