"""The sensor: a task that waits for a table."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from airflow.sdk import BaseSensorOperator, PokeReturnValue
from airflow.sdk.exceptions import AirflowFailException
from icefield import IcefieldError

from icefield_tools.airflow.conditions import TableCondition
from icefield_tools.airflow.hook import IcefieldHook
from icefield_tools.airflow.trigger import IcefieldTableTrigger


class IcefieldTableSensor(BaseSensorOperator):
    """Waits until a branch of a table has a snapshot, and returns it as a dict.

    ``newer_than``: the snapshot is from after this time, in ISO form, such as ``"{{ data_interval_end }}"``.
    ``filter``: it has rows that this condition takes, such as ``"day = DATE '2024-01-31'"``. A table that is missing
    is waited for. While it waits, the task takes no place of a worker; ``deferrable=False`` lets it wait there.
    """

    template_fields = ("table", "branch", "newer_than", "filter", "conn_id")

    def __init__(
        self,
        *,
        table: str,
        branch: str = "main",
        newer_than: Any = None,
        filter: str | None = None,
        conn_id: str = IcefieldHook.default_conn_name,
        deferrable: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.table, self.branch, self.newer_than, self.filter = table, branch, newer_than, filter
        self.conn_id, self.deferrable = conn_id, deferrable

    def poke(self, context: Mapping[str, Any]) -> PokeReturnValue:
        """Look once. Raises ``AirflowFailException`` for an error that will not pass: no retry of the task helps."""
        try:
            condition = TableCondition(self.table, self.branch, self.newer_than, self.filter)
            found = condition.found(IcefieldHook(self.conn_id).get_conn())
        except IcefieldError as error:
            if error.retryable:
                raise
            raise AirflowFailException(f"{type(error).__name__}: {error}") from error
        return PokeReturnValue(is_done=found is not None, xcom_value=found)

    def execute(self, context: Mapping[str, Any]) -> Any:
        """Wait, in the triggerer if the condition is not fulfilled at once."""
        if not self.deferrable:
            return super().execute(context)
        looked = self.poke(context)
        if looked.is_done:
            return looked.xcom_value
        trigger = IcefieldTableTrigger(
            self.table, self.branch, self.newer_than, self.filter, self.conn_id, self.poke_interval
        )
        return self.defer(trigger=trigger, method_name="execute_complete", timeout=timedelta(seconds=self.timeout))

    def execute_complete(self, context: Mapping[str, Any], event: Mapping[str, Any]) -> Any:
        """The snapshot of the trigger's event. Raises ``AirflowFailException`` for an error that will not pass."""
        if "error" in event:
            raise AirflowFailException(event["error"])
        return event["found"]
