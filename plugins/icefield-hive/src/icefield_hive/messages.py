"""The part of the metastore's interface that is used: after ``hive_metastore.thrift`` of Apache Hive.

The calls are those that Hive 2.3, 3 and 4 share.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from icefield_hive.structs import BOOL, I32, I64, TEXT, TEXTS, Kind, ListOf, Struct


class LockState(IntEnum):
    """What became of a request for a lock."""

    ACQUIRED = 1
    WAITING = 2
    ABORT = 3
    NOT_ACQUIRED = 4


EXCLUSIVE = 3  # of LockType
LEVEL_DATABASE, LEVEL_TABLE = 1, 2  # of LockLevel
PRINCIPAL_TYPES = {"USER": 1, "ROLE": 2, "GROUP": 3}

FIELD = Struct("FieldSchema", {"name": (1, TEXT), "type": (2, TEXT), "comment": (3, TEXT)})
SERDE = Struct("SerDeInfo", {"name": (1, TEXT), "serializationLib": (2, TEXT), "parameters": (3, TEXTS)})
STORAGE = Struct(
    "StorageDescriptor",
    {
        "cols": (1, ListOf(FIELD)),
        "location": (2, TEXT),
        "inputFormat": (3, TEXT),
        "outputFormat": (4, TEXT),
        "compressed": (5, BOOL),
        "numBuckets": (6, I32),
        "serdeInfo": (7, SERDE),
        "bucketCols": (8, ListOf(TEXT)),
        "parameters": (10, TEXTS),
    },
)
TABLE = Struct(
    "Table",
    {
        "tableName": (1, TEXT),
        "dbName": (2, TEXT),
        "owner": (3, TEXT),
        "createTime": (4, I32),
        "lastAccessTime": (5, I32),
        "retention": (6, I32),
        "sd": (7, STORAGE),
        "partitionKeys": (8, ListOf(FIELD)),
        "parameters": (9, TEXTS),
        "tableType": (12, TEXT),
    },
)
DATABASE = Struct(
    "Database",
    {
        "name": (1, TEXT),
        "description": (2, TEXT),
        "locationUri": (3, TEXT),
        "parameters": (4, TEXTS),
        "ownerName": (6, TEXT),
        "ownerType": (7, I32),
    },
)
CONTEXT = Struct("EnvironmentContext", {"properties": (1, TEXTS)})
TABLE_REQUEST = Struct("GetTableRequest", {"dbName": (1, TEXT), "tblName": (2, TEXT)})
TABLE_RESULT = Struct("GetTableResult", {"table": (1, TABLE)})
TABLES_REQUEST = Struct("GetTablesRequest", {"dbName": (1, TEXT), "tblNames": (2, ListOf(TEXT))})
TABLES_RESULT = Struct("GetTablesResult", {"tables": (1, ListOf(TABLE))})

LOCK_COMPONENT = Struct(
    "LockComponent", {"type": (1, I32), "level": (2, I32), "dbname": (3, TEXT), "tablename": (4, TEXT)}
)
LOCK_REQUEST = Struct(
    "LockRequest",
    {"component": (1, ListOf(LOCK_COMPONENT)), "user": (3, TEXT), "hostname": (4, TEXT), "agentInfo": (5, TEXT)},
)
LOCK_ID = Struct("CheckLockRequest, UnlockRequest, HeartbeatRequest", {"lockid": (1, I64)})
LOCK_RESPONSE = Struct("LockResponse", {"lockid": (1, I64), "state": (2, I32), "errorMessage": (3, TEXT)})
SHOW_LOCKS = Struct("ShowLocksRequest", {"dbname": (1, TEXT), "tablename": (2, TEXT)})
SHOWN_LOCK = Struct("ShowLocksResponseElement", {"lockid": (1, I64), "agentInfo": (13, TEXT)})
SHOWN_LOCKS = Struct("ShowLocksResponse", {"locks": (1, ListOf(SHOWN_LOCK))})

EXCEPTION = Struct("exception", {"message": (1, TEXT)})  # what all of them begin with


@dataclass(frozen=True)
class Method:
    """A call."""

    name: str
    arguments: Struct
    answer: Struct
    """What comes back: ``success``, or one of the exceptions by its name."""
    repeatable: bool = False
    """Whether asking again after a lost reply does no harm."""


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


SET_UGI = _method("set_ugi", {"user_name": TEXT, "group_names": ListOf(TEXT)}, "Meta", ListOf(TEXT), True)
GET_DATABASE = _method("get_database", {"name": TEXT}, "NoSuchObject Meta", DATABASE, True)
GET_ALL_DATABASES = _method("get_all_databases", {}, "Meta", ListOf(TEXT), True)
CREATE_DATABASE = _method("create_database", {"database": DATABASE}, "AlreadyExists InvalidObject Meta")
ALTER_DATABASE = _method("alter_database", {"dbname": TEXT, "db": DATABASE}, "Meta NoSuchObject")
DROP_DATABASE = _method(
    "drop_database", {"name": TEXT, "deleteData": BOOL, "cascade": BOOL}, "NoSuchObject InvalidOperation Meta"
)
GET_TABLE = _method("get_table_req", {"req": TABLE_REQUEST}, "Meta NoSuchObject", TABLE_RESULT, True)
GET_TABLES = _method(
    "get_table_objects_by_name_req", {"req": TABLES_REQUEST}, "Meta InvalidOperation UnknownDB", TABLES_RESULT, True
)
GET_ALL_TABLES = _method("get_all_tables", {"db_name": TEXT}, "Meta", ListOf(TEXT), True)
CREATE_TABLE = _method(
    "create_table_with_environment_context",
    {"tbl": TABLE, "environment_context": CONTEXT},
    "AlreadyExists InvalidObject Meta NoSuchObject",
)
ALTER_TABLE = _method(
    "alter_table_with_environment_context",
    {"dbname": TEXT, "tbl_name": TEXT, "new_tbl": TABLE, "environment_context": CONTEXT},
    "InvalidOperation Meta",
)
DROP_TABLE = _method("drop_table", {"dbname": TEXT, "name": TEXT, "deleteData": BOOL}, "NoSuchObject Meta")
LOCK = _method("lock", {"rqst": LOCK_REQUEST}, "NoSuchTxn TxnAborted", LOCK_RESPONSE)
CHECK_LOCK = _method("check_lock", {"rqst": LOCK_ID}, "NoSuchTxn TxnAborted NoSuchLock", LOCK_RESPONSE, True)
UNLOCK = _method("unlock", {"rqst": LOCK_ID}, "NoSuchLock TxnOpen", None, True)
HEARTBEAT = _method("heartbeat", {"ids": LOCK_ID}, "NoSuchLock NoSuchTxn TxnAborted", None, True)
FIND_LOCKS = _method("show_locks", {"rqst": SHOW_LOCKS}, "", SHOWN_LOCKS, True)
