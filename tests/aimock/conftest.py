"""An independent server, `@copilotkit/aimock`.

Install it with `npm install --no-save @copilotkit/aimock`, or name its `llmock` in AIMOCK. With AIMOCK_REQUIRED set,
a missing server is a failure and not a skip.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).parents[2]


def _find_llmock() -> str | None:
    local = ROOT / "node_modules" / ".bin" / "llmock"
    return os.environ.get("AIMOCK") or (str(local) if local.exists() else shutil.which("llmock"))


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    llmock = _find_llmock()
    if llmock is None or shutil.which("node") is None:
        why = "aimock needs node and: npm install --no-save @copilotkit/aimock"
        if os.environ.get("AIMOCK_REQUIRED"):
            pytest.fail(why)
        pytest.skip(why)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [llmock, "-p", str(port), "-f", str(Path(__file__).with_name("fixtures.json")), "--log-level", "silent"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with httpx.Client(transport=httpx.HTTPTransport(retries=8)) as client:  # it takes a moment to listen
            client.get(f"http://127.0.0.1:{port}/__aimock/journal")
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(10)
