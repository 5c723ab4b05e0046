"""A plain request gets an answer, with nobody listening too, and nothing fails on the way."""

from __future__ import annotations

from ...pipeline import wrap_model
from ...protocol import Kind
from .material import PLAIN
from .subject import Subject, opened, require_no_failure_of_its_own
from .upstream import Upstream
from .wording import require, show_answer, show_error

KINDS: tuple[Kind, Kind] = ("generate", "stream")


async def check_a_plain_request_is_no_trouble(subject: Subject) -> None:
    for kind in KINDS:
        seen = await subject.ask(kind, PLAIN)
        require_no_failure_of_its_own(seen.raised, seen.findings, f"do_{kind}, and the model says {show_answer(PLAIN)}")


async def check_a_chain_without_listeners_works(subject: Subject) -> None:
    """Where nobody listens a chain has no scope unless a member needs one, which it may forget to say."""
    seen = await subject.ask("generate", PLAIN)
    member, upstream = subject.factory(), Upstream([PLAIN])
    async with opened(member):
        model = wrap_model(upstream, [member], surroundings=subject.surroundings)
        raised: Exception | None = None
        try:
            await model.do_generate(subject.options)
            async with (await model.do_stream(subject.options)).stream as stream:
                async for _ in stream:
                    pass
        except Exception as error:
            raised = error
        finally:
            await upstream.close_what_is_left()
    require(
        raised is None or seen.denied or seen.raised is not None,
        f"alone in its chain, where nobody listens to outcomes, it raised {show_error(raised)}. With a listener the "
        f"same call works: set `needs_scope = True` on it",
    )
