"""Chat completions in OpenAI's format, as many servers speak it: request and messages, response, sse and stream are
pure; repair and errors judge a refusal; model and client do the I/O.
Nothing here retries, or keeps anything between two calls but connections.
"""

from .client import HttpClient
from .model import OpenAICompatibleModel

__all__ = ["HttpClient", "OpenAICompatibleModel"]
