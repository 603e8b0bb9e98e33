"""Formats that state wrong metrics for the rows that they wrote."""

from __future__ import annotations

from dataclasses import replace

from broken_file_formats.handed_on import Right, broken_metrics


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
