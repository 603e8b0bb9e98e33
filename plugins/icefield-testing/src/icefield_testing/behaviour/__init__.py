"""The behaviour of a catalog as its users see it, with one group of checks per module."""

from icefield_testing.behaviour.returns import ReturnChecks
from icefield_testing.behaviour.suite import TableBehaviourSuite

__all__ = ["ReturnChecks", "TableBehaviourSuite"]
