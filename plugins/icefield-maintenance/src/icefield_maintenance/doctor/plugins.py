"""The installed plugins: broken plugins, and plugins that conflict with each other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version

from icefield import PluginInfo, Plugins
from icefield.errors import IcefieldError

from icefield_maintenance.doctor.findings import Finding, Result

_KERNEL = "icefield"
_REQUIREMENT = re.compile(r"icefield(?![\w.-])\s*(?:\[[^]]*\])?\s*\(?([^;)]*)")
_BOUND = re.compile(r"\s*(>=|<=|==|!=|<|>)\s*([\d.]+)\s*")


def examine_plugins(plugins: Plugins) -> list[Finding]:
    """One finding for each plugin, for each name that two plugins provide, and for each part that does not load.

    The examination imports all parts of the plugins, including SDKs.
    """
    return [*_each(plugins), *_things(plugins)]


def _each(plugins: Plugins) -> Iterator[Finding]:
    for info in plugins.listing():
        check, origin = f"plugin {info.name}", f"{info.distribution or 'no distribution'} {info.version or ''}".strip()
        if info.error:
            advice = f"reinstall {info.distribution or info.name}, or uninstall it"
            yield Finding(check, Result.FAILED, f"{origin} does not load: {info.error}", advice)
        elif wanted := _unmet(info):
            found = f"{origin} wants icefield {wanted}, and {version(_KERNEL)} is installed"
            yield Finding(check, Result.FAILED, found, f"pip install --upgrade icefield {info.distribution}")
        else:
            yield Finding(check, Result.OK, origin)


def _things(plugins: Plugins) -> Iterator[Finding]:
    loaders = {
        "file-formats": ("file format", plugins.file_format),
        "file-systems": ("file system", plugins.file_system),
        "commit-strategies": ("commit strategy", plugins.commit_strategy),
        "catalogs": ("catalog", plugins.catalog),
    }
    for kind, (noun, load) in loaders.items():
        for name in plugins.names(kind):
            try:
                load(name)
            except IcefieldError as error:  # two plugins provide it, or its import fails
                found, _, advice = str(error).partition("; ")
                advice = advice or "reinstall the plugin, or report it to its author"
                yield Finding(f"{noun} {name}", Result.FAILED, found, advice)


def _unmet(info: PluginInfo) -> str | None:
    """Which versions of the kernel a plugin's distribution wants, when the installed one is not among them."""
    try:
        wanted = requires(info.distribution) if info.distribution else None
        installed = version(_KERNEL)
    except PackageNotFoundError:
        return None
    for requirement in wanted or ():
        found = _REQUIREMENT.match(requirement)
        if found and not all(_holds(installed, bound) for bound in found[1].split(",")):
            return found[1].strip()
    return None


def _holds(installed: str, bound: str) -> bool:
    """Whether a version is within a bound. Bounds of another form than plain numbers are left to pip."""
    found = _BOUND.fullmatch(bound)
    if found is None:
        return True
    have, limit = _numbers(installed), _numbers(found[2])
    length = max(len(have), len(limit))
    have, limit = have + (0,) * (length - len(have)), limit + (0,) * (length - len(limit))
    return {
        ">=": have >= limit,
        "<=": have <= limit,
        "==": have == limit,
        "!=": have != limit,
        "<": have < limit,
        ">": have > limit,
    }[found[1]]


def _numbers(string: str) -> tuple[int, ...]:
    plain = re.match(r"[\d.]*\d", string)
    return tuple(int(part) for part in plain[0].split(".") if part) if plain else ()
