"""Formats that state wrong metrics for the rows that they wrote."""

from __future__ import annotations

from dataclasses import replace

from mutants import Mutant, of
from mutants.formats.handed_on import Right, broken_metrics


class TellsBoundsThatAreTooTight(Right):
    writer = broken_metrics(lambda metrics: replace(metrics, upper_bounds=metrics.lower_bounds))


class CountsNoNulls(Right):
    writer = broken_metrics(
        lambda metrics: replace(metrics, null_value_counts=dict.fromkeys(metrics.null_value_counts, 0))
    )


class CountsRowsTwice(Right):
    writer = broken_metrics(lambda metrics: replace(metrics, record_count=2 * metrics.record_count))


class TellsNanForABound(Right):
    writer = broken_metrics(
        lambda metrics: replace(
            metrics,
            upper_bounds={
                number: float("nan") if isinstance(bound, float) else bound
                for number, bound in metrics.upper_bounds.items()
            },
        )
    )


class BoundsWhatLiesBelowNulls(Right):
    writer = broken_metrics(lambda metrics: replace(metrics, lower_bounds={**metrics.lower_bounds, 3: -999}))


class OrdersTextsByUtf16(Right):
    writer = broken_metrics(
        lambda metrics: replace(
            metrics,
            upper_bounds={
                number: "\uffff" if isinstance(bound, str) and bound > "\uffff" else bound
                for number, bound in metrics.upper_bounds.items()
            },
        )
    )


class BoundsNegativeZeroByZero(Right):
    writer = broken_metrics(
        lambda metrics: replace(
            metrics,
            lower_bounds={
                number: 0.0 if isinstance(bound, float) and bound == 0 else bound
                for number, bound in metrics.lower_bounds.items()
            },
        )
    )


class CountsNullsOfParentsOnly(Right):
    writer = broken_metrics(
        lambda metrics: replace(metrics, value_counts=dict.fromkeys(metrics.value_counts, metrics.record_count))
    )


MUTANTS: list[Mutant] = of(
    {
        TellsBoundsThatAreTooTight: ("test_metrics_are_true", "upper bound of 1: 0, there is 998"),
        CountsNoNulls: ("test_metrics_are_true", "nulls of 2: stated 0, there are 143"),
        CountsRowsTwice: ("test_metrics_are_true", "record_count is 1,998, there are 999 rows"),
        TellsNanForABound: ("test_a_nan_is_no_bound", "a bound is NaN"),
        BoundsWhatLiesBelowNulls: ("test_values_below_null_parents_are_not_counted", "widens the bounds"),
        OrdersTextsByUtf16: ("test_metrics_of_strings_are_true", "ordered by UTF-16"),
        BoundsNegativeZeroByZero: ("test_metrics_of_floats_are_true", "lower bound of 2: 0.0, there is -0.0"),
        CountsNullsOfParentsOnly: ("test_metrics_of_nested_columns_are_true", "values of 21: stated 5, there are 4"),
    }
)
