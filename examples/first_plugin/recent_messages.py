"""A plugin: `recent_messages` sends system messages and the newest few others."""

from __future__ import annotations

from collections.abc import Callable

from pydantic import Field

from neurolink_mw import CallOptions, LanguageModel, Middleware, MiddlewareConfig, Stage, hookimpl
from neurolink_mw.protocol import Kind

requires_api = 1


class RecentMessagesConfig(MiddlewareConfig):
    """keep: how many messages, the newest, besides system messages."""

    keep: int = Field(20, ge=1)


class RecentMessages(Middleware):
    """Sends system messages and the newest others only."""

    stage = Stage.NORMALIZE
    reads = writes = frozenset({"prompt"})
    Config = RecentMessagesConfig
    config: RecentMessagesConfig

    async def transform_params(self, options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        others = [message for message in options.prompt if message.role != "system"]
        kept = set(map(id, others[-self.config.keep :]))
        prompt = [message for message in options.prompt if message.role == "system" or id(message) in kept]
        return options if len(prompt) == len(options.prompt) else options.replace(prompt=prompt)


@hookimpl
def register_middlewares(register: Callable[[type[Middleware]], None]) -> None:
    register(RecentMessages)
