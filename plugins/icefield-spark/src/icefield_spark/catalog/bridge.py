"""Objects in the driver that the catalog's Java classes call."""

from __future__ import annotations

import json
import logging
from typing import Any, ClassVar
from weakref import WeakValueDictionary

from icefield.errors import IcefieldError
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from icefield_spark.failures import original

_log = logging.getLogger(__name__)
_ASKED: WeakValueDictionary[str, Remote] = WeakValueDictionary()


class Remote:
    """A Python object with ``on_…`` methods that Java calls by name, with a string, a Java object or nothing.

    A reply is a string, a Java object or another ``Remote``. An error goes back as a string that begins with ``!``.
    Java keeps the object alive for as long as it has a reference.
    """

    def apply(self, method: str, argument: Any) -> Any:
        """Answer a call of Java's."""
        try:
            return getattr(self, f"on_{method}")(argument)
        except IcefieldError as error:
            return _failure(type(error).__name__, error)
        except PySparkException as failure:
            cause = original(failure) or failure
            return _failure(type(cause).__name__, cause)
        except Py4JJavaError as failure:  # Spark 3.5 lets some errors of rows pass as they are
            return _failure("InvalidArgument", _innermost(failure.java_exception))
        except Exception as error:
            _log.exception("a call of Spark's failed")
            return _failure("InternalError", error)

    def on_itself(self, _: None) -> str:
        """Return the key by which ``remote`` finds this object again."""
        key = str(id(self))
        _ASKED[key] = self
        return key

    class Java:
        """The Java interface that py4j implements with this object."""

        implements: ClassVar[list[str]] = ["java.util.function.BiFunction"]


def remote(java: Any) -> Remote:
    """The Python object behind its Java counterpart."""
    return _ASKED[java.apply("itself", None)]


def _innermost(error: Any) -> str:
    while error.getCause() is not None:
        error = error.getCause()
    return str(error.getMessage())


def _failure(kind: str, error: object) -> str:
    return f"!{kind}\n{error}"


def reply(value: Any) -> str:
    """A reply as JSON; Java reads ``true`` and ``false`` as they are."""
    return json.dumps(value)
