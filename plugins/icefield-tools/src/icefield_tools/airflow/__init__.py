"""Tables in DAGs of Airflow: a hook, and a sensor that waits for a table without a worker."""

from icefield_tools.airflow.hook import IcefieldHook
from icefield_tools.airflow.sensor import IcefieldTableSensor
from icefield_tools.airflow.trigger import IcefieldTableTrigger

__all__ = ["IcefieldHook", "IcefieldTableSensor", "IcefieldTableTrigger"]
