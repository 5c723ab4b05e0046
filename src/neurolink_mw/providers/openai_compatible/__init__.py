"""Chat completions in OpenAI's format, as many servers speak it. Pure: request (with options, messages), response and
stream (with tool_deltas; readings are shared), errors and repair. I/O: model (with endpoint, client).
Nothing here retries, or keeps anything between two calls but connections.
"""

from .client import HttpClient
from .model import OpenAICompatibleModel

__all__ = ["HttpClient", "OpenAICompatibleModel"]
