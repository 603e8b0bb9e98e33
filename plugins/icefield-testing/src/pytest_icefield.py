"""The pytest plugin of the kit: a failed check shows the values in its assertion, as a test of the author's does.

It is a module of its own: pytest loads it for every run, and imports the kit only where a test file asks for it.
"""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("icefield_testing")
