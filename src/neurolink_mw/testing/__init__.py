"""The kit for plugin authors: models that answer from a script, local servers that speak the providers' formats, and
checks of the contracts. Nothing here needs a network or a test framework.
"""

from . import wire
from .checks import check_model, check_stream
from .contract import check_middleware, chunkings
from .scripted import HOLD, Pause, ScriptedCall, ScriptedModel

__all__ = [
    "HOLD",
    "Pause",
    "ScriptedCall",
    "ScriptedModel",
    "check_middleware",
    "check_model",
    "check_stream",
    "chunkings",
    "wire",
]
