"""The findings of an examination: the check, its result, the observation and the advice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from icefield.errors import AccessDenied, FileMissing, IcefieldError, StorageError
from icefield.toolkit import without_credentials


class Result(Enum):
    """The result of a check."""

    OK = "ok"
    WARNING = "warning"
    """Nothing is broken by it yet."""
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check: its name, its result, the observation and, unless all is well, the advice.

    For a table, it also has the location of the file, the section of the specification, and the repair or the reason
    for having none.
    """

    check: str
    result: Result
    found: str = ""
    advice: str = ""
    location: str = ""
    section: str = ""
    repair: Enum | None = None
    no_repair: str = ""


class Broken(Exception):
    """Raised by a check if its subject breaks a rule: the observation and the advice."""

    def __init__(self, found: str, advice: str) -> None:
        super().__init__(found)
        self.found, self.advice = found, advice


class Warned(Broken):
    """Raised by a check for a problem that does no harm yet."""


def tried(check: str, action: Callable[[], str | None], properties: Mapping[str, str], doing: str = "") -> Finding:
    """Run a check and return its finding. The check returns an observation or raises; all exceptions become findings.

    ``doing`` names the operation and its location for an error that does not: ``"delete s3://bucket/x"``.
    """
    try:
        return Finding(check, Result.OK, action() or "")
    except Warned as warned:
        return Finding(check, Result.WARNING, warned.found, warned.advice)
    except Broken as broken:
        return Finding(check, Result.FAILED, broken.found, broken.advice)
    except IcefieldError as error:
        found, advice = _of_error(error, doing)
    except Exception as error:  # a plugin that lets an SDK's own error out
        found = f"{doing}: {type(error).__name__}: {error}" if doing else f"{type(error).__name__}: {error}"
        advice = "report it to the author of the plugin: no other than Icefield's errors may leave it"
    return Finding(check, Result.FAILED, without_credentials(found, properties), advice)


def skipped(check: str, why: str) -> Finding:
    """The finding for a check that did not run."""
    return Finding(check, Result.SKIPPED, why)


def _of_error(error: IcefieldError, doing: str) -> tuple[str, str]:
    """The observation and the advice in an error. Errors of Icefield state the advice after a semicolon."""
    found, _, advice = str(error).partition("; ")
    if isinstance(error, AccessDenied):
        right = (
            f"give the credentials in use the right to {doing}" if doing else "give the credentials in use that right"
        )
        return f"denied: {found}", f"{right}; {advice}" if advice else right
    if advice:
        return found, advice
    if error.retryable:
        return found, "try again; when it stays so, look at the address of the store and at the network"
    if isinstance(error, (StorageError, FileMissing)):
        return found, f"see why it cannot {doing}: its address, its space, the credentials" if doing else _LOOK
    return found, _LOOK


_LOOK = "correct the properties of the catalog that this names"


def failures(findings: Iterator[Finding] | list[Finding]) -> list[Finding]:
    """The failed findings."""
    return [finding for finding in findings if finding.result is Result.FAILED]
