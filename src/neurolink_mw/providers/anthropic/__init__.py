"""Claude through Anthropic's Messages API and the anthropic SDK. Pure: request (with options, messages, tools,
json_answer), response and stream, errors and repair. I/O: model (with client, hosted). Nothing here retries, or keeps
anything between two calls but connections.
"""

from .client import AnthropicClient
from .model import AnthropicModel

__all__ = ["AnthropicClient", "AnthropicModel"]
