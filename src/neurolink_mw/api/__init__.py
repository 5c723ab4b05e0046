"""The front door: `generate` and `stream`. Names become models, middlewares chains, and a prompt a whole turn.

The turn itself is run by `loop/`, what stands around it is bound by `pipeline/` and `config/`.
"""

from .generate import generate, generate_sync
from .prompt import Prompt
from .result import Generated
from .stream import Streamed, stream, stream_sync

__all__ = ["Generated", "Prompt", "Streamed", "generate", "generate_sync", "stream", "stream_sync"]
