"""The watchdog over the checks of the kit."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from icefield_testing.watchdog import watched

pool = ThreadPoolExecutor(1)
with pytest.raises(pytest.fail.Exception, match="did not end within 0.5 s"), watched(0.5, "a check"):
    pool.submit(threading.Event().wait).result()
print("through", flush=True)
"""


@pytest.mark.slow
def test_a_thread_of_a_pool_that_hangs_does_not_keep_the_run_from_ending() -> None:
    ended = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=100, check=False)
    assert (ended.returncode, ended.stdout) == (1, "through\n")
