"""Amazon Bedrock's Converse API. Pure: request (with options, capabilities, messages, media, tool_results, tools,
thinking), response and stream (with readings), history (the inverse of messages), errors. I/O: model, with what it
stands on. Whole turns: agentic_loop, bridge (with chunks) and turn_model. Nothing here keeps anything of a conversation
between two calls.
"""

from .client import BedrockClient
from .model import BedrockModel
from .threads import Threads
from .turn_model import BedrockTurn, BedrockTurnModel, BedrockTurnStream

__all__ = ["BedrockClient", "BedrockModel", "BedrockTurn", "BedrockTurnModel", "BedrockTurnStream", "Threads"]
