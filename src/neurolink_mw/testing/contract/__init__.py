"""The contract of a middleware, as a suite that its author runs: one module an idea, one function a promise.

`check_middleware` builds chains with `wrap_model` around scripted models and looks at what comes out; it knows no
particular middleware, and calls no hook of one by itself.
"""

from .chunking import chunkings
from .suite import check_middleware

__all__ = ["check_middleware", "chunkings"]
