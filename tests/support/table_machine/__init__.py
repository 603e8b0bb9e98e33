"""The parts of the state machine of whole tables."""
