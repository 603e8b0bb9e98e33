"""The results of the metrics evaluators for one file."""

from icefield.expressions import bind, inclusive_metrics, parse, strict_metrics
from naive_filters import SCHEMA
from naive_statistics import ColumnStatistics, File, Statistics

INT = SCHEMA.find_field("c_int").field_id
FLOAT = SCHEMA.find_field("c_double").field_id
TEXT = SCHEMA.find_field("c_string").field_id
UUID = SCHEMA.find_field("c_uuid").field_id


def verdict(text, record_count=10, **columns):
    """Return the verdict of both evaluators on one file: "none", "some" or "all" of its rows match."""
    ids = {"int": INT, "double": FLOAT, "string": TEXT, "uuid": UUID, "nested": SCHEMA.find_field("s.d").field_id}
    file = File([], record_count, {ids[name]: ColumnStatistics(*one) for name, one in columns.items()})
    bound = bind(SCHEMA, parse(text) if isinstance(text, str) else text)
    kept, covered = inclusive_metrics(bound, Statistics([file]))[0], strict_metrics(bound, Statistics([file]))[0]
    return "all" if covered else "some" if kept else "none"
