"""The state machine of whole tables: what it is made of."""
