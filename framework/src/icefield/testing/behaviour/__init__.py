"""The behaviour of a catalog as its users see it, one group of checks a module."""

from icefield.testing.behaviour.returns import ReturnChecks
from icefield.testing.behaviour.suite import TableBehaviourSuite

__all__ = ["ReturnChecks", "TableBehaviourSuite"]
