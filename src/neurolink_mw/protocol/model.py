"""The one small protocol that everything here speaks, and the contracts of a tool's execution."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Mapping, Sequence
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from .content import ToolCall
from .options import CallOptions
from .prompt import ToolOutput
from .results import GenerateResult
from .stream_result import StreamResult
from .values import Value, value

SPECIFICATION_VERSION = "v3"

SupportedUrls: TypeAlias = Mapping[str, Sequence[str]]
"""Media type pattern (`*` or `image/*` included) to regular expressions of addresses that the model reads itself."""


@runtime_checkable
class LanguageModel(Protocol):
    """A model, or anything that behaves like one.

    A whole call is two methods: `do_generate` returns the answer, `do_stream` returns it in parts. What fails before
    the first content is raised from either; later failures of a stream are an `error` part. Cancellation is the
    caller's task being cancelled. A model may also have `supported_urls`; without it, none are supported.

        class Echo:
            provider, model_id = "example", "echo"

            async def do_generate(self, options):
                return GenerateResult((Text(user_text(options.prompt)),))

            async def do_stream(self, options):
                return StreamResult.of(await self.do_generate(options))
    """

    @property
    def provider(self) -> str:
        """Who runs the model, as in "bedrock"."""

    @property
    def model_id(self) -> str:
        """The provider's own id of the model."""

    def do_generate(self, options: CallOptions, /) -> Awaitable[GenerateResult]:
        """The whole answer. Raises what went wrong, a ProviderError where it was the provider."""
        ...

    def do_stream(self, options: CallOptions, /) -> Awaitable[StreamResult]:
        """The answer in parts. Raises what goes wrong before the first content; later failures are `error` parts."""
        ...


def supported_urls(model: object) -> SupportedUrls:
    """The addresses that a model reads itself; none where it does not say."""
    urls: SupportedUrls = getattr(model, "supported_urls", None) or {}
    return urls


def is_url_supported(media_type: str, url: str, supported: SupportedUrls) -> bool:
    """Whether a model reads this address itself, by the AI SDK's matching: a media type pattern is a prefix (`*` and
    `*/*` are every type), an expression may match anywhere, and case counts in neither."""
    wanted = media_type.lower()
    return any(
        re.search(expression, url, re.IGNORECASE)
        for pattern, expressions in supported.items()
        if wanted.startswith("" if pattern in ("*", "*/*") else pattern.lower().replace("*", "", 1))
        for expression in expressions
    )


@value
class ToolOutcome(Value):
    """What became of one tool call. `output` is what the model will read; `status` says how it came about."""

    output: ToolOutput
    status: Literal["ok", "error", "denied", "cancelled", "timeout"] = "ok"


class ToolRunner(Protocol):
    """The next thing in when a tool call is wrapped: another middleware's hook, or the tool itself."""

    @property
    def name(self) -> str:
        """The name that the model calls the tool by."""

    @property
    def options(self) -> CallOptions:
        """Those of the step that made the call: its prompt, the caller's metadata, the request's context."""

    async def run(self, call: ToolCall) -> ToolOutcome:
        """Answer the call. What goes wrong is an outcome as well, that the model can read."""
        ...
