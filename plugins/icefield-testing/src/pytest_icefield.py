"""The pytest plugin of the kit: a failed check shows the values in its assertion, like the author's own tests.

It is a module of its own, since pytest loads it for every run, and should import the kit only if a test file does.
"""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("icefield_testing")
