"""Real installed distributions, as small as they can be: a module and the metadata that pip would have written."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent

GREETER = """
    from neurolink_mw import Middleware, hookimpl

    class Greeter(Middleware):
        id = "{id}"

    @hookimpl
    def register_middlewares(register):
        register(Greeter)
"""


def install(site: Path, distribution: str, source: str, *, entry_point: str | None = None, version: str = "1.2") -> str:
    """Write a distribution with one plugin into a directory that is on `sys.path`. The module's name is returned."""
    module = distribution.replace("-", "_")
    name = entry_point or distribution
    (site / f"{module}.py").write_text(dedent(source), encoding="utf-8")
    info = site / f"{module}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(f"[neurolink_mw]\n{name} = {module}\n")
    return module


@contextmanager
def imported_afresh(site: Path, prefix: str = "acme") -> Iterator[None]:
    """Put `site` on the path, and forget the modules that were imported from it afterwards."""
    sys.path.insert(0, str(site))
    try:
        yield
    finally:
        sys.path.remove(str(site))
        for name in [name for name in sys.modules if name.startswith(prefix)]:
            del sys.modules[name]


Install = Callable[..., str]
