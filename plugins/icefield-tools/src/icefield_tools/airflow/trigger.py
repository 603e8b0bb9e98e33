"""The trigger: it waits for a table in Airflow's triggerer, which needs no worker."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent
from icefield import IcefieldError

from icefield_tools.airflow.conditions import TableCondition
from icefield_tools.airflow.hook import IcefieldHook, catalog_of_connection


class IcefieldTableTrigger(BaseTrigger):
    """Waits until a table fulfils a condition, and looks every ``poke_interval`` seconds.

    Its event has ``found``, as ``TableCondition.found`` returns it, or ``error``: a failure that may pass is looked at
    again, another one ends the wait.
    """

    def __init__(
        self,
        table: str,
        branch: str = "main",
        newer_than: int | str | None = None,
        filter: str | None = None,
        conn_id: str = IcefieldHook.default_conn_name,
        poke_interval: float = 60.0,
    ) -> None:
        super().__init__()
        self._condition = TableCondition(table, branch, newer_than, filter)
        self._conn_id, self._poke_interval = conn_id, poke_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """The class of the trigger, and the arguments to make it again in the triggerer."""
        arguments = {**asdict(self._condition), "conn_id": self._conn_id, "poke_interval": self._poke_interval}
        return f"{type(self).__module__}.{type(self).__qualname__}", arguments

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield one event. Catalogs are asked in a thread, so that no trigger delays another."""
        while True:
            try:
                # Asked each time, since credentials of a connection may change in days of waiting.
                connection = await IcefieldHook.aget_connection(self._conn_id)
                catalog = await asyncio.to_thread(catalog_of_connection, connection)
                found = await asyncio.to_thread(self._condition.found, catalog)
            except IcefieldError as error:
                if not error.retryable:
                    yield TriggerEvent({"error": f"{type(error).__name__}: {error}"})
                    return
                self.log.warning("waiting for %s goes on after: %s", self._condition.table, error)
                found = None
            if found is not None:
                yield TriggerEvent({"found": found})
                return
            await asyncio.sleep(self._poke_interval)
