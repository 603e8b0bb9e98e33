"""The icefield command."""
