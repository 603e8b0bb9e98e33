"""What a table may be in a statement that goes to Spark: something that is read."""

# See docs/decisions/0180.

from __future__ import annotations

from icefield.errors import UnsupportedFeature
from sqlglot import exp

_CHANGE = "EXPLAIN is for queries"
_REASONS: dict[type[exp.Expr], str] = {
    exp.Analyze: "CALL system.compute_table_stats and system.compute_partition_stats compute statistics of a table",
    exp.Cache: "CACHE TABLE name AS SELECT * FROM … keeps rows under a name of Spark's",
    exp.Uncache: "UNCACHE TABLE takes the name that CACHE TABLE … AS SELECT gave",
    exp.LoadData: "CALL system.add_files takes files into a table, and INSERT INTO … SELECT * FROM parquet.`…` copies",
    exp.MultitableInserts: "give an INSERT for each table",
    exp.Insert: _CHANGE,
    exp.Delete: _CHANGE,
    exp.Update: _CHANGE,
    exp.Merge: _CHANGE,
}


def check_role(tree: exp.Expr, table: exp.Table, *, is_view: bool) -> None:
    """Raise ``UnsupportedFeature`` for a table or view of the catalog that Spark is to do more with than to read it."""
    if isinstance(tree, exp.Query | exp.Values) or table.find_ancestor(exp.Query) is not None:
        return
    if isinstance(tree, exp.Merge) and table is not tree.this:
        return
    name = ".".join(part.name for part in table.parts)
    if is_view and isinstance(tree, exp.Insert | exp.Delete | exp.Update | exp.Merge):
        raise UnsupportedFeature(
            f"{name} is a view, whose rows cannot be changed: change those of its tables", view=name
        )
    why = _REASONS.get(type(tree), "Spark knows nothing of it but the rows that a query reads")
    raise UnsupportedFeature(f"{name} is a table of Icefield, with which Spark cannot do this: {why}", table=name)
