"""Theta sketches: the distinct values of a column, counted in bounded memory."""

from icefield_maintenance.theta.estimate import distinct_values, theta_estimate
from icefield_maintenance.theta.sketch import ThetaSketch

__all__ = ["ThetaSketch", "distinct_values", "theta_estimate"]
