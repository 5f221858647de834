"""What the tests of several files are given."""

import pytest

from tests.core.swept import Swept


@pytest.fixture
def world() -> Swept:
    """A world that is swept, in files that have none of their own."""
    return Swept()
