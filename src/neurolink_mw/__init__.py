"""neurolink-mw: middleware pipelines around calls to language models.

The public names, imported when first used; nothing is defined here.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .api import generate as generate
    from .api import generate_sync as generate_sync
    from .api import stream as stream
    from .api import stream_sync as stream_sync
    from .config import Pipeline as Pipeline
    from .pipeline import BuildContext as BuildContext
    from .pipeline import Middleware as Middleware
    from .pipeline import MiddlewareConfig as MiddlewareConfig
    from .pipeline import Outcome as Outcome
    from .pipeline import Stage as Stage
    from .pipeline import Use as Use
    from .pipeline import When as When
    from .pipeline import wrap_model as wrap_model
    from .plugins import hookimpl as hookimpl
    from .protocol import CallContext as CallContext
    from .protocol import CallOptions as CallOptions
    from .protocol import DecisionModel as DecisionModel
    from .protocol import GenerateResult as GenerateResult
    from .protocol import LanguageModel as LanguageModel
    from .protocol import PartStream as PartStream
    from .protocol import StreamResult as StreamResult
    from .protocol import from_json as from_json
    from .protocol import primed as primed
    from .protocol import to_json as to_json
    from .tools import Tool as Tool
    from .tools import tool as tool

_HOME = {
    **dict.fromkeys(("generate", "generate_sync", "stream", "stream_sync"), "api"),
    **dict.fromkeys(("Tool", "tool"), "tools"),
    "Pipeline": "config",
    **dict.fromkeys(
        ("BuildContext", "Middleware", "MiddlewareConfig", "Outcome", "Stage", "Use", "When", "wrap_model"), "pipeline"
    ),
    "hookimpl": "plugins",
    **dict.fromkeys(
        (
            *("CallContext", "CallOptions", "DecisionModel", "GenerateResult", "LanguageModel", "PartStream"),
            *("StreamResult", "from_json", "primed", "to_json"),
        ),
        "protocol",
    ),
}

__all__ = sorted(_HOME)  # the keys are names


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
    return value


def __dir__() -> list[str]:
    return __all__
