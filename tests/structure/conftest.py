import pytest
from pusher import structure_of


@pytest.fixture(scope="session")
def inferred():
    """The structure of the pusher, its random episodes, and those that seek contact."""
    return structure_of()
