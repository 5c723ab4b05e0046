"""A policy over answers: may this be said, may this tool be called?"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, ClassVar

from ..errors import ConfigError
from ..pipeline import Effect, Middleware, OnError, Rules, Stage
from ..pipeline.marks import is_of_a_turn
from ..pipeline.mistake import Mistake
from ..pipeline.scope import Scope
from ..pipeline.tool_hooks import note_replaced
from ..protocol import (
    CallContext,
    CallOptions,
    Content,
    ExecutionDenied,
    Finish,
    GenerateResult,
    LanguageModel,
    PartStream,
    Slot,
    StreamPart,
    StreamResult,
    ToolApprovalRequest,
    ToolCall,
    ToolOutcome,
    ToolRunner,
)
from .gate import Gate, HeldCall
from .role import Adapter, Role, as_verdict, asking
from .streaming import Hold, Pass, Streaming, Window
from .units import (
    CHANNELS,
    Said,
    belongs_to_a_turn,
    call_to_judge,
    filtered,
    identity,
    is_judged,
    marked_denied,
    require_channels,
    with_texts,
    without_body,
    without_traces,
)
from .verdict import ACTIONS, Verdict, allow
from .views import Request, View, ViewKind

_VERDICTS: Slot[dict[tuple[object, ...], Verdict] | None] = Slot("neurolink_mw.verdicts", None)


class ResponsePolicy(Role):
    """Judges each answer, with one verdict however it came: generated, streamed, from a cache or a fallback.

        class BlockWord(ResponsePolicy):
            def check(self, view):
                return deny("blocked-word") if "bomb" in view.text.lower() else allow()

    `check` gets the joined text, the joined reasoning, and each tool call by itself; only the verdict on a whole one
    counts. A denied text denies the answer. A denied tool call is taken out, and the answer ends with
    `content-filter`; within a turn it is marked, and the turn tells the model. A policy that fails denies, unless its
    place says otherwise.

    streaming: `Hold()` lets nothing leave before the verdict. `Window(n)` and `Pass()` let text leave before it, and
    may deny only with `allow_partial_release = True`; `replace` needs `Hold()`. sees: of "text", "reasoning" and
    "tool_input". monotone: once a beginning of a text is denied, every longer one is; then a stream under a window is
    denied at once.
    """

    stage: ClassVar[int] = Stage.GUARD
    answers: ClassVar[frozenset[str]] = frozenset({"check"})
    reads: ClassVar[frozenset[Effect]] = frozenset({"output"})
    writes: ClassVar[frozenset[Effect]] = frozenset({"output"})
    judges: ClassVar[frozenset[Effect]] = frozenset({"output"})
    default_on_error: ClassVar[OnError] = "deny"
    streaming: Streaming = Hold()
    sees: Sequence[str] = CHANNELS
    monotone: bool = False
    allow_partial_release: bool = False

    def check(self, view: View) -> Verdict | Awaitable[Verdict]:
        """`allow()`, `deny(code, message)`, `replace(text)` or `flag(code)`."""
        raise NotImplementedError

    def as_middleware(self, rules: Rules) -> Middleware:
        return _ResponseAdapter(self, rules)


class _ResponseAdapter(Adapter[ResponsePolicy]):
    def __init__(self, role: ResponsePolicy, rules: Rules) -> None:
        super().__init__(role, rules)
        _require_settings(role)
        self._check: Callable[[View], Awaitable[Any]] = asking(role, role.check, ResponsePolicy, rules)
        self._mode = role.streaming
        self._sees = frozenset(role.sees)
        if not isinstance(self._mode, Hold):
            self.about = f"streaming {self._mode}: text may leave before the verdict"

    # -- whole answers

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        result = await model.do_generate(options)
        request = Request(options, "generate", model.provider, model.model_id)
        return await self._judged(result, request)

    async def _judged(self, result: GenerateResult, request: Request) -> GenerateResult:
        context = request.options.context
        content: list[Content] = []
        reason = result.finish_reason
        taken_out: set[str] = set()
        for one in result.content:
            if isinstance(one, ToolApprovalRequest) and one.tool_call_id in taken_out:
                continue  # there is nothing to approve any more
            if "tool_input" not in self._sees or not isinstance(one, ToolCall) or not is_judged(one):
                content.append(one)
                continue
            verdict = await self._verdict_on(one, request)
            kept = self._after_verdict(one, verdict, context)
            if kept is None:
                reason = filtered(reason, verdict.code)
                taken_out.add(one.tool_call_id)
            else:
                content.append(kept)
        texts = await self._judge_texts(Said.of(result.content), request, released=False)
        if texts:
            content = with_texts(content, texts)
        if len(content) == len(result.content) and all(map(_is, content, result.content)):
            return result
        return without_traces(result.replace(content=content, finish_reason=reason))

    # -- streams

    async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        result = await model.do_stream(options)
        request = Request(options, "stream", model.provider, model.model_id)
        if self.shadow:
            return result.through(lambda parts: self._shadowed(parts, request))
        return without_body(result).through(lambda parts: self._gated(parts, request))

    async def _shadowed(self, parts: PartStream, request: Request) -> AsyncIterator[StreamPart]:
        """Everything passes at once; what would have been said is noted at the end."""
        gate = Gate(Pass(), self._sees)
        calls: list[HeldCall] = []
        finished = False
        async for part in parts:
            if part.__class__ is Finish:
                finished = True
                await self._judge_unseen(gate, calls, request)
            else:
                looks_at = gate.feed(part)
                if isinstance(looks_at, HeldCall):
                    calls.append(looks_at)
            gate.forget()
            yield part
        if not finished:
            await self._judge_unseen(gate, calls, request)

    async def _judge_unseen(self, gate: Gate, calls: Sequence[HeldCall], request: Request) -> None:
        for call in (*calls, *gate.unfinished_calls()):
            await self._judge_call(gate, call, request)
        await self._judge_texts(gate.said(), request, released=False)

    async def _gated(self, parts: PartStream, request: Request) -> AsyncIterator[StreamPart]:
        gate = Gate(self._mode, self._sees)
        taken_out: Verdict | None = None
        finished = False
        async for part in parts:
            if isinstance(part, Finish):
                finished = True
                for waited in await self._finished(gate, part, taken_out, request):
                    yield waited
                continue
            looks_at = gate.feed(part)
            if isinstance(looks_at, HeldCall):
                taken_out = await self._judge_call(gate, looks_at, request) or taken_out
            elif looks_at is not None and await self._look(gate, looks_at, request):
                gate.allowed(looks_at)
            for ready in gate.ready():
                yield ready
        if not finished:
            for waited in await self._finished(gate, None, taken_out, request):
                yield waited

    async def _finished(
        self, gate: Gate, finish: Finish | None, taken_out: Verdict | None, request: Request
    ) -> list[StreamPart]:
        """The end of the answer, or of what came of it: the verdict, then everything that waited for it."""
        for cut in gate.unfinished_calls():
            await self._judge_call(gate, cut, request)  # no call of the whole answer: it ends as that does
        texts = await self._judge_texts(gate.said(), request, released=gate.released)
        rest = list(gate.rest(texts))
        if finish is None:
            return rest
        if taken_out is not None:
            finish = finish.replace(finish_reason=filtered(finish.finish_reason, taken_out.code))
        if texts or gate.changed:
            finish = finish.replace(provider_metadata=None, extra=None)
        return [*rest, finish]

    async def _judge_call(self, gate: Gate, call: HeldCall, request: Request) -> Verdict | None:
        """The verdict, where it takes the call out."""
        verdict = await self._verdict_on(call.asked, request)
        gate.settle(call, self._after_verdict(call.asked, verdict, request.options.context))
        return verdict if call.kept is None else None

    async def _look(self, gate: Gate, kind: ViewKind, request: Request) -> bool:
        """Whether a look at the text so far lets it leave. What it says otherwise only holds the text back, until a
        later look or the end allows it; so does a failure, which counts if the whole answer leads to it too."""
        try:
            verdict = await self._ask(View(kind, gate.text_of(kind), request, final=False))
        except Exception:
            return False
        if verdict.action == "deny" and self.role.monotone and gate.is_a_beginning(kind):
            raise self.denial(request.options.context, verdict, kind, released=gate.released)
        return verdict.action in ("allow", "flag")

    # -- tools that are about to run

    def judge_tool(self, model: LanguageModel) -> Callable[[ToolRunner, ToolCall], Awaitable[ToolOutcome]] | None:
        """A call is judged before it runs also where no answer of a step brings it: around a turn that is not
        streamed, and where a conversation brings it along."""
        if "tool_input" not in self._sees or self.shadow:
            return None

        async def judge(tool: ToolRunner, call: ToolCall) -> ToolOutcome:
            scope = tool.options.context.scope
            kind = scope.kind if isinstance(scope, Scope) else "generate"
            request = Request(tool.options, kind, model.provider, model.model_id)
            verdict = await self._verdict_on(call, request)
            if verdict.action == "deny":
                return ToolOutcome(ExecutionDenied(verdict.message), "denied")
            if verdict.action == "replace":
                replaced = call.replace(input=str(verdict.replacement))
                self._remember(replaced, allow(), request)  # it will be met in the answer
                note_replaced(tool.options.context, call.tool_call_id, replaced.input)
                call = replaced
            return await tool.run(call)

        return judge

    async def _verdict_on(self, call: ToolCall, request: Request) -> Verdict:
        """The verdict on a call. One of a turn is met twice, when it runs and in the answer, and asked about once."""
        known = request.options.context.get(_VERDICTS)
        if known is not None and (verdict := known.get(self._key(call))) is not None:
            return verdict
        view = call_to_judge(call, request)
        verdict = await self._ask(view)
        self._note(request.options.context, verdict, view)
        self._remember(call, verdict, request)
        return verdict

    def _remember(self, call: ToolCall, verdict: Verdict, request: Request) -> None:
        if not is_of_a_turn(call):
            return
        context = request.options.context
        known = context.get(_VERDICTS)
        if known is None:
            context.set(_VERDICTS, known := {})
        known[self._key(call)] = verdict

    def _key(self, call: ToolCall) -> tuple[object, ...]:
        return (id(self), *identity(call))

    # -- verdicts

    async def _ask(self, view: View) -> Verdict:
        verdict = as_verdict(self.id, await self._check(view))
        if isinstance(self._mode, Hold):
            pass
        elif verdict.action == "replace":
            raise Mistake(f"{self.id}.check replaced text that may have left already: replace needs Hold()")
        elif verdict.action == "deny" and view.kind != "tool_call" and not self.role.allow_partial_release:
            raise Mistake(
                f"{self.id}.check denied text that may have left already: use Hold(), or say that this is wanted with "
                f"allow_partial_release = True"
            )
        if verdict.action == "replace" and not isinstance(verdict.replacement, str):
            raise Mistake(f"{self.id}.check replaced a text with {type(verdict.replacement).__name__}: give a text")
        return verdict

    async def _judge_texts(self, said: Said, request: Request, *, released: bool) -> dict[ViewKind, str]:
        """The verdicts on the whole text and the whole reasoning; what replaces them. Raises the denial."""
        texts: dict[ViewKind, str] = {}
        context = request.options.context
        for view in said.views(self._sees, request):
            verdict = await self._ask(view)
            if verdict.action == "deny" and not self.shadow:
                raise self.denial(context, verdict, view.kind, released=released)
            self._note(context, verdict, view)
            if verdict.action == "replace" and not self.shadow:
                texts[view.kind] = str(verdict.replacement)
        return texts

    def _after_verdict(self, call: ToolCall, verdict: Verdict, context: CallContext) -> ToolCall | None:
        """What is left of a call: itself, with another input or marked, or nothing. The answer itself is not denied by
        that: what the model says beside the call stands."""
        if self.shadow or verdict.action in ("allow", "flag"):
            return call
        if verdict.action == "replace":
            return call.replace(input=str(verdict.replacement))
        return marked_denied(call, verdict) if belongs_to_a_turn(call, context) else None

    def _note(self, context: CallContext, verdict: Verdict, view: View) -> None:
        if verdict.action != "allow":
            call = view.tool_call.tool_call_id if view.tool_call is not None else None
            self.note(context, ACTIONS[verdict.action], verdict.code, view.kind, tool_call_id=call)


def _is(one: Content, other: Content) -> bool:
    return one is other


def _require_settings(role: ResponsePolicy) -> None:
    """ConfigError for settings of a policy that cannot work."""
    name = type(role).__name__
    mode: object = role.streaming
    if isinstance(mode, type) and issubclass(mode, Hold | Window | Pass):
        raise ConfigError(f"{name}.streaming is an instance: write {mode.__name__}({'n' if mode is Window else ''})")
    if not isinstance(mode, Hold | Window | Pass):
        raise ConfigError(f"{name}.streaming is Hold(), Window(n) or Pass(), not {type(mode).__name__}")
    require_channels(f"{name}.sees", role.sees, "a policy judges")
