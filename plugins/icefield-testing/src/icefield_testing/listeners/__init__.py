"""The parts of the suite for listeners."""

from icefield_testing.listeners.hearing import Hearing, state_of_the_process
from icefield_testing.listeners.sample_events import later_events, sample_events

__all__ = ["Hearing", "later_events", "sample_events", "state_of_the_process"]
