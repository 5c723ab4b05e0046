"""Everything async runs on asyncio and on trio."""

import gc

import hypothesis  # noqa: F401  # it looks for who holds trio's random numbers, and finds nobody once they are frozen
import pytest


def pytest_collection_finish() -> None:
    """What is loaded by now stays: a collection between tests need not look through it again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    backend: str = request.param
    return backend
