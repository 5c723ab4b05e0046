"""Local servers that speak the wire formats of model providers over real sockets, on the standard library alone.

A reply is a value (`reply`), laid out as writes and pauses (`plan`), sent over HTTP/1.1 (`http1`, `connection`) by a
server in a thread (`server`), which keeps a `journal`. `openai` knows its format; no client and no model lives here.
"""

from neurolink_mw.testing.wire import openai
from neurolink_mw.testing.wire.journal import Exchange, Journal, Outcome
from neurolink_mw.testing.wire.openai import server as openai_server
from neurolink_mw.testing.wire.plan import HOLD, Framing, Pause
from neurolink_mw.testing.wire.reply import Delivery, Disconnect, JsonReply, RawReply, Reply, SseReply
from neurolink_mw.testing.wire.server import Repeat, ScriptedReply, ScriptedServer

__all__ = [
    "HOLD",
    "Delivery",
    "Disconnect",
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
    "openai",
    "openai_server",
]
