"""Helper calls of a member to the next model in: `model.do_generate(options.for_helper(prompt))`.

Such a call passes no boundary, and belongs to no scope. It gets a scope of its own here, so that what is denied in it
refuses the question, and not the call that it was asked for.
"""

from __future__ import annotations

from collections.abc import Awaitable

from ..protocol import CallOptions, GenerateResult, StreamResult
from .bind import Layer, names_of
from .boundary import Boundary
from .scope import Host


def with_helper_calls(layer: Layer, host: Host) -> Layer:
    """The next model in for a member that asks it for itself. `host`: of the helper calls' scopes."""
    boundary = Boundary(host, timed=False)
    generate, stream = layer.do_generate, layer.do_stream

    def do_generate(options: CallOptions) -> Awaitable[GenerateResult]:
        return (boundary.do_generate if _is_homeless(options) else generate)(options)

    def do_stream(options: CallOptions) -> Awaitable[StreamResult]:
        return (boundary.do_stream if _is_homeless(options) else stream)(options)

    around = names_of(layer)
    around.do_generate, around.do_stream = do_generate, do_stream
    return around


def _is_homeless(options: CallOptions) -> bool:
    return options.context.helper and options.context.scope is None
