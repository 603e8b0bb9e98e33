"""What the kit says where its extra is not installed."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("absent", ["pytest", "hypothesis"])
def test_without_the_extra_the_kit_says_what_to_install(absent: str) -> None:
    program = f"import sys; sys.modules[{absent!r}] = None; import icefield.testing"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f'need {absent}: pip install "icefield[testing]"' in done.stderr
