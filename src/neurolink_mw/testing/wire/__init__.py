"""Local servers that speak the wire formats of model providers over real sockets, on the standard library alone.

A reply is a value (`reply`), laid out as writes and pauses (`plan`), sent over HTTP/1.1 (`http1`, `connection`) by a
server in a thread (`server`), which keeps a `journal`. `openai`, `bedrock` and `anthropic` know their formats,
`converse_rules` and `anthropic_rules` what Bedrock and Anthropic refuse; no client and no model lives here.
"""

from neurolink_mw.testing.wire import anthropic, bedrock, eventstream, openai
from neurolink_mw.testing.wire.anthropic import StreamReply
from neurolink_mw.testing.wire.anthropic import server as anthropic_server
from neurolink_mw.testing.wire.bedrock import EventsReply
from neurolink_mw.testing.wire.bedrock import server as bedrock_server
from neurolink_mw.testing.wire.journal import Exchange, Journal, Outcome
from neurolink_mw.testing.wire.openai import server as openai_server
from neurolink_mw.testing.wire.plan import HOLD, Framing, Pause
from neurolink_mw.testing.wire.reply import Delivery, Disconnect, JsonReply, RawReply, Reply, SseReply
from neurolink_mw.testing.wire.server import Repeat, ScriptedReply, ScriptedServer

__all__ = [
    "HOLD",
    "Delivery",
    "Disconnect",
    "EventsReply",
    "Exchange",
    "Framing",
    "Journal",
    "JsonReply",
    "Outcome",
    "Pause",
    "RawReply",
    "Repeat",
    "Reply",
    "ScriptedReply",
    "ScriptedServer",
    "SseReply",
    "StreamReply",
    "anthropic",
    "anthropic_server",
    "bedrock",
    "bedrock_server",
    "eventstream",
    "openai",
    "openai_server",
]
