"""The updates of table metadata: one frozen value a step, applied together by ``apply_updates``."""
