"""The part of the metastore's interface that the catalog uses, as defined by ``hive_metastore.thrift`` of Apache Hive.

Hive 2.3, 3 and 4 all have these calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from icefield.errors import StorageError

from icefield_hive.structs import BOOL, I16, I32, I64, STRING, STRINGS, Kind, ListOf, Struct


class LockState(IntEnum):
    """The state of a request for a lock."""

    ACQUIRED = 1
    WAITING = 2
    ABORT = 3
    NOT_ACQUIRED = 4

    @classmethod
    def _missing_(cls, value: object) -> LockState:
        raise StorageError(f"the Hive Metastore states {value!r} of a lock, which is no state")


EXCLUSIVE = 3  # of LockType
LEVEL_DATABASE, LEVEL_TABLE = 1, 2  # of LockLevel
PRINCIPAL_TYPES = {"USER": 1, "ROLE": 2, "GROUP": 3}

FIELD = Struct("FieldSchema", {"name": (1, STRING), "type": (2, STRING), "comment": (3, STRING)})
SERDE = Struct("SerDeInfo", {"name": (1, STRING), "serializationLib": (2, STRING), "parameters": (3, STRINGS)})
STORAGE = Struct(
    "StorageDescriptor",
    {
        "cols": (1, ListOf(FIELD)),
        "location": (2, STRING),
        "inputFormat": (3, STRING),
        "outputFormat": (4, STRING),
        "compressed": (5, BOOL),
        "numBuckets": (6, I32),
        "serdeInfo": (7, SERDE),
        "bucketCols": (8, ListOf(STRING)),
        "parameters": (10, STRINGS),
    },
)
TABLE = Struct(
    "Table",
    {
        "tableName": (1, STRING),
        "dbName": (2, STRING),
        "owner": (3, STRING),
        "createTime": (4, I32),
        "lastAccessTime": (5, I32),
        "retention": (6, I32),
        "sd": (7, STORAGE),
        "partitionKeys": (8, ListOf(FIELD)),
        "parameters": (9, STRINGS),
        "tableType": (12, STRING),
    },
)
PARTITION = Struct("Partition", {"values": (1, ListOf(STRING)), "sd": (6, STORAGE)})
DATABASE = Struct(
    "Database",
    {
        "name": (1, STRING),
        "description": (2, STRING),
        "locationUri": (3, STRING),
        "parameters": (4, STRINGS),
        "ownerName": (6, STRING),
        "ownerType": (7, I32),
    },
)
CONTEXT = Struct("EnvironmentContext", {"properties": (1, STRINGS)})
TABLE_REQUEST = Struct("GetTableRequest", {"dbName": (1, STRING), "tblName": (2, STRING)})
TABLE_RESULT = Struct("GetTableResult", {"table": (1, TABLE)})
TABLES_REQUEST = Struct("GetTablesRequest", {"dbName": (1, STRING), "tblNames": (2, ListOf(STRING))})
TABLES_RESULT = Struct("GetTablesResult", {"tables": (1, ListOf(TABLE))})

LOCK_COMPONENT = Struct(
    "LockComponent", {"type": (1, I32), "level": (2, I32), "dbname": (3, STRING), "tablename": (4, STRING)}
)
LOCK_REQUEST = Struct(
    "LockRequest",
    {"component": (1, ListOf(LOCK_COMPONENT)), "user": (3, STRING), "hostname": (4, STRING), "agentInfo": (5, STRING)},
)
LOCK_ID = Struct("CheckLockRequest, UnlockRequest, HeartbeatRequest", {"lockid": (1, I64)})
LOCK_RESPONSE = Struct("LockResponse", {"lockid": (1, I64), "state": (2, I32), "errorMessage": (3, STRING)})
SHOW_LOCKS = Struct("ShowLocksRequest", {"dbname": (1, STRING), "tablename": (2, STRING)})
SHOWN_LOCK = Struct("ShowLocksResponseElement", {"lockid": (1, I64), "agentInfo": (13, STRING)})
SHOWN_LOCKS = Struct("ShowLocksResponse", {"locks": (1, ListOf(SHOWN_LOCK))})

EXCEPTION = Struct("exception", {"message": (1, STRING)})  # the first field of all exceptions


@dataclass(frozen=True)
class Method:
    """A method of the metastore's interface."""

    name: str
    arguments: Struct
    answer: Struct
    """The result: ``success``, or an exception under its name."""
    repeatable: bool = False
    """Whether a retry after a lost reply does no harm."""


def _method(
    name: str,
    arguments: Mapping[str, Kind],
    raises: str = "",
    result: Kind | None = None,
    repeatable: bool = False,
) -> Method:
    numbered = {argument: (number, kind) for number, (argument, kind) in enumerate(arguments.items(), 1)}
    answer: dict[str, tuple[int, Kind]] = {e: (number, EXCEPTION) for number, e in enumerate(raises.split(), 1)}
    if result is not None:
        answer["success"] = (0, result)
    return Method(name, Struct(f"{name}_args", numbered), Struct(f"{name}_result", answer), repeatable)


SET_UGI = _method("set_ugi", {"user_name": STRING, "group_names": ListOf(STRING)}, "Meta", ListOf(STRING), True)
GET_DATABASE = _method("get_database", {"name": STRING}, "NoSuchObject Meta", DATABASE, True)
GET_ALL_DATABASES = _method("get_all_databases", {}, "Meta", ListOf(STRING), True)
CREATE_DATABASE = _method("create_database", {"database": DATABASE}, "AlreadyExists InvalidObject Meta")
ALTER_DATABASE = _method("alter_database", {"dbname": STRING, "db": DATABASE}, "Meta NoSuchObject")
DROP_DATABASE = _method(
    "drop_database", {"name": STRING, "deleteData": BOOL, "cascade": BOOL}, "NoSuchObject InvalidOperation Meta"
)
GET_TABLE = _method("get_table_req", {"req": TABLE_REQUEST}, "Meta NoSuchObject", TABLE_RESULT, True)
GET_TABLES = _method(
    "get_table_objects_by_name_req", {"req": TABLES_REQUEST}, "Meta InvalidOperation UnknownDB", TABLES_RESULT, True
)
GET_ALL_TABLES = _method("get_all_tables", {"db_name": STRING}, "Meta", ListOf(STRING), True)
GET_TABLES_BY_FILTER = _method(
    "get_table_names_by_filter",
    {"dbname": STRING, "filter": STRING, "max_tables": I16},
    "Meta InvalidOperation UnknownDB",
    ListOf(STRING),
    True,
)
GET_PARTITION_NAMES = _method(
    "get_partition_names", {"db_name": STRING, "tbl_name": STRING, "max_parts": I16}, "Meta", ListOf(STRING), True
)
GET_PARTITIONS_BY_NAMES = _method(
    "get_partitions_by_names",
    {"db_name": STRING, "tbl_name": STRING, "names": ListOf(STRING)},
    "Meta NoSuchObject",
    ListOf(PARTITION),
    True,
)
CREATE_TABLE = _method(
    "create_table_with_environment_context",
    {"tbl": TABLE, "environment_context": CONTEXT},
    "AlreadyExists InvalidObject Meta NoSuchObject",
)
ALTER_TABLE = _method(
    "alter_table_with_environment_context",
    {"dbname": STRING, "tbl_name": STRING, "new_tbl": TABLE, "environment_context": CONTEXT},
    "InvalidOperation Meta",
)
DROP_TABLE = _method("drop_table", {"dbname": STRING, "name": STRING, "deleteData": BOOL}, "NoSuchObject Meta")
LOCK = _method("lock", {"rqst": LOCK_REQUEST}, "NoSuchTxn TxnAborted", LOCK_RESPONSE)
CHECK_LOCK = _method("check_lock", {"rqst": LOCK_ID}, "NoSuchTxn TxnAborted NoSuchLock", LOCK_RESPONSE, True)
UNLOCK = _method("unlock", {"rqst": LOCK_ID}, "NoSuchLock TxnOpen", None, True)
HEARTBEAT = _method("heartbeat", {"ids": LOCK_ID}, "NoSuchLock NoSuchTxn TxnAborted", None, True)
FIND_LOCKS = _method("show_locks", {"rqst": SHOW_LOCKS}, "", SHOWN_LOCKS, True)
