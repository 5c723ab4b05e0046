"""Clients of both kinds."""

from __future__ import annotations

from types import ModuleType

import httpx
import httpx2
import pytest


@pytest.fixture(params=[httpx, httpx2], ids=["httpx", "httpx2"])
def http(request: pytest.FixtureRequest) -> ModuleType:
    """The two libraries whose clients can be passed."""
    module: ModuleType = request.param
    return module
