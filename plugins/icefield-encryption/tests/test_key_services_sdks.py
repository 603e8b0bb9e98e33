"""The SDKs of key services are optional: without one, its key service says how to install it."""

from __future__ import annotations

import subprocess
import sys

import pytest

_SDKS = {"aws": "botocore", "azure": "azure.keyvault", "gcp": "google.cloud.kms_v1", "vault": "hvac"}
_ASK = """
import sys
from importlib.abc import MetaPathFinder

class Absent(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == sys.argv[2]:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
from icefield import Plugins
from icefield.errors import MissingPlugin
try:
    Plugins.installed().key_service(sys.argv[1])
except MissingPlugin as error:
    print(error)
"""


@pytest.mark.parametrize("name", _SDKS)
def test_a_key_service_without_its_sdk_names_the_extra(name: str) -> None:
    run = subprocess.run([sys.executable, "-c", _ASK, name, _SDKS[name]], capture_output=True, text=True, check=True)
    assert f'{_SDKS[name]}, which is not installed: pip install "icefield-encryption[{name}]"' in run.stdout
