"""What the tests of all clients share: where the service is, and the key of an account with a balance."""

import os

import pytest

URL = os.environ["SERVICE_URL"]
KEY = os.environ["SERVICE_KEY"]
# A single pixel.
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGD4DwABBAEAX+XDSwAAAABJRU5ErkJggg=="


@pytest.fixture(scope="session")
def anyio_backend():
    return "asyncio"


@pytest.fixture(scope="session")
async def one_event_loop(anyio_backend):
    """For clients whose connections outlive a test."""
    yield
