"""The contract suite: sound middlewares pass, and each broken one is caught with advice."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress

import anyio
import pytest
from tests.testing import sound
from tests.testing.broken import answers, calls, losses, streams, tools, words
from tests.testing.broken.kit import Passing, with_text

from neurolink_mw.errors import ConfigError
from neurolink_mw.middlewares.add_tool_input_examples import AddToolInputExamples
from neurolink_mw.middlewares.default_instructions import DefaultInstructions
from neurolink_mw.middlewares.default_settings import DefaultSettings
from neurolink_mw.middlewares.extract_json import ExtractJson
from neurolink_mw.middlewares.extract_reasoning import ExtractReasoning
from neurolink_mw.middlewares.lifecycle import Lifecycle
from neurolink_mw.middlewares.logging import Logging
from neurolink_mw.middlewares.retry import Retry
from neurolink_mw.middlewares.simulate_streaming import SimulateStreaming
from neurolink_mw.middlewares.timeout import Timeout
from neurolink_mw.pipeline import BuildContext, Member, Middleware, Outcome, Surroundings
from neurolink_mw.pipeline.denial import Denial
from neurolink_mw.protocol import (
    CallOptions,
    FinishReason,
    GenerateResult,
    Kind,
    LanguageModel,
    PartStream,
    Reasoning,
    StreamPart,
    StreamResult,
    Text,
    TextDelta,
    ToolCall,
    user,
    user_text,
)
from neurolink_mw.roles import (
    Observer,
    RegexTransform,
    Request,
    RequestPolicy,
    ResponsePolicy,
    TextTransform,
    Verdict,
    View,
    Window,
    allow,
    deny,
    replace,
)
from neurolink_mw.testing import ScriptedModel, check_middleware
from neurolink_mw.testing.contract.suite import CHECKS, promise_of

SECRETS: list[str | GenerateResult] = [
    "the secret is",
    "half a secre",
    "ses",
    GenerateResult((Reasoning("hm"), Text("secret"))),
    GenerateResult((Text("fine"), ToolCall("c", "look_up", '{"word": "secret"}')), FinishReason("tool-calls")),
]

# ---------------------------------------------------------------------------------------------------- what passes


@pytest.mark.parametrize(
    "factory",
    [
        sound.PassThrough,
        sound.Uppercase,
        sound.Retry,
        sound.Cache,
        sound.Closed,
        sound.SimulatedStreaming,
        sound.Judged,
        sound.OneAtATime,
        sound.InTheBackground,
        sound.RefuseRequests,
    ],
)
def test_a_sound_middleware_passes(factory: type[Middleware]) -> None:
    check_middleware(factory)


@pytest.mark.parametrize("factory", [sound.Redact, sound.Validate, sound.RefuseAnswers])
def test_a_sound_middleware_passes_with_answers_of_interest(factory: type[Middleware]) -> None:
    check_middleware(factory, answers=SECRETS)


def test_an_answer_of_interest_may_be_a_whole_result_without_usage() -> None:
    check_middleware(sound.PassThrough, answers=[GenerateResult((Text("<th"),))])


def test_the_built_in_middlewares_pass() -> None:
    check_middleware(DefaultSettings)
    check_middleware(
        lambda: DefaultSettings(top_p=0.5, metadata={"tenant": "other"}), options=CallOptions.from_text("hi")
    )
    check_middleware(Logging)
    check_middleware(lambda: Logging(content=True))
    check_middleware(Lifecycle)
    check_middleware(lambda: Lifecycle(on_start=print, on_chunk=lambda event: None, on_finish=lambda event: None))


def test_the_others_that_come_with_the_library_pass() -> None:
    thoughts = ["<think>hm</think>So it is.", "a < b, and <think>half of a thou", "said <thi"]
    fenced = ['```json\n{"a": 1}\n```', "``` no fence ``", "```json\n{}\n`"]
    check_middleware(ExtractReasoning, answers=thoughts)
    check_middleware(lambda: ExtractReasoning(start_with_reasoning=True), answers=thoughts)
    check_middleware(ExtractJson, answers=fenced)
    check_middleware(SimulateStreaming)
    check_middleware(lambda: DefaultInstructions(instructions="Be brief."))
    check_middleware(AddToolInputExamples)
    check_middleware(lambda: Retry(delay=0))
    check_middleware(lambda: Timeout(call=60, attempt=60))


# ---------------------------------------------------------------------------------------------- what is caught

PLAIN = "a plain request is no trouble"
ALONE = "a chain without listeners works"
GRAMMAR = "the stream grammar is kept"
AGREE = "generate and stream agree"
KINDS = "answers of many kinds agree"
INPUTS = "tool inputs say what their calls say"
FOUND_TWICE = "what is found twice is changed twice"
AGAIN = "the same answer comes out the same again"
INTERLEAVED = "interleaved blocks are kept apart"
IDS = "odd ids are ids like any other"
EVERY_KIND = "parts of every kind are passed on"
BESIDE = "what stands beside the answer is kept"
METADATA = "metadata is kept"
RAW = "raw parts are untouched"
THOUSAND = "a thousand tiny deltas cost a thousand times one"
ORPHANS = "deltas of no block are changed like others"
UNFINISHED = "a stream without an end loses nothing"
ERRORS = "an error part is passed on"
FAILURES = "a failure of the model comes out"
LEAVING = "a caller may leave at every part"
NOT_RETURNED = "what is opened and not returned is closed"
FINISH = "what is done at the end is done at the finish"
ATTEMPTS = "an attempt that is given up is closed"
SAID_AGAIN = "what has left is not said again"
CANCELLED = "a cancellation comes out wherever it hits"
AT_ONCE = "calls at once do not mix"
TWICE = "one member may stand in two pipelines"
IN_TURNS = "one task may read streams in turns"
CONTEXT = "context variables stay as they were"
OPTIONS = "the options are left as they were"
REFUSED = "a refusal further in comes out"
WRITES = "changes of the request are declared"
OUTPUT = "changes of the answer are declared"
ANSWERS = "answers of its own are declared"
MONOTONE = "a monotone refusal is final"
OUTCOME = "every call has one outcome"
TOOL = "a tool is no trouble"
TOOL_ONCE = "a tool runs once for a call"
TOOL_CALL = "a call reaches the tool as it was made"
TOOL_DENIED = "a denied tool call stays denied"
TOOL_CANCELLED = "a cancellation comes out of a tool"
TOOLS_AT_ONCE = "tools at once do not mix"
TURN = "a turn is the same generated and streamed"
MARKS = "the marks of a turn are kept"

BROKEN: list[tuple[type[Middleware], str, str]] = [
    (answers.FailsOnEveryAnswer, PLAIN, "raised KeyError.*the model did nothing wrong"),
    (words.DoesNotSayThatItNeedsAScope, ALONE, "needs_scope = True"),
    (streams.DropsTheEndsOfBlocks, GRAMMAR, "finish while blocks are open.*close each block that you open"),
    (streams.BeginsTwice, GRAMMAR, "a second stream-start"),
    (answers.RewritesPieceByPiece, AGREE, "the content differs.*Hold back what may still become part of a match"),
    (answers.ForgetsTheTail, AGREE, "let it go at the latest when the block ends"),
    (answers.RewritesWholeAnswersOnly, AGREE, "fills in wrap_generate and not wrap_stream.*fill in both"),
    (answers.EndsEveryStreamWell, AGREE, "the finish reason is 'length' generated and 'stop' streamed"),
    (answers.LosesTheUsage, AGREE, "the usage differs"),
    (answers.FailsOnAnEmptyAnswer, AGREE, "raised IndexError.*Make it cope with every answer"),
    (answers.LeavesOutSources, KINDS, "the content differs"),
    (answers.RewritesToolInputsInPiecesOnly, INPUTS, "in pieces, and as .* in its tool-call. Rewrite both alike"),
    (answers.ChangesTheFirstOnly, FOUND_TWICE, "the content differs.*no number, time or chance"),
    (answers.NumbersWhatItFinds, AGAIN, "do_generate.*again and again.*First: .*<1>.*later: .*no memory of what came"),
    (answers.KnowsOneBlockAtATime, INTERLEAVED, "Keep state per block id, never 'the current block'"),
    (answers.TakesAnEmptyIdForNone, IDS, "the first text block has the id ''.*An id is any text"),
    (losses.LosesToolResultsInStreams, EVERY_KIND, "do_stream.*file, tool-approval-request, tool-result is lost"),
    (losses.LosesToolResultsInStreams, KINDS, "the content differs"),
    (losses.LosesToolResultsInWholeAnswers, EVERY_KIND, "do_generate.*file, tool-approval-request, tool-r.* is lost"),
    (losses.LosesWhatItDoesNotKnow, EVERY_KIND, "citation-map is lost.*`yield part` for all others"),
    (losses.SaysThatTheProviderRunsTools, EVERY_KIND, "tool-call of look_up comes out with other flags.*part.replace"),
    (losses.MakesNewToolParts, EVERY_KIND, "do_stream.*tool-call of web_search comes out with other flags"),
    (losses.LosesWarningsOfStreams, BESIDE, "do_stream.*the warning is lost. Pass on the stream-start part"),
    (losses.LosesWarningsOfWholeAnswers, BESIDE, "do_generate.*the warning is lost. Pass on GenerateResult.warnings"),
    (losses.MakesANewStreamResult, BESIDE, "StreamResult.request is lost.*result.through"),
    (losses.LosesTheResponse, BESIDE, "StreamResult.response is lost"),
    (losses.LosesTheRequest, BESIDE, "GenerateResult.request is lost"),
    (losses.MakesNewToolParts, METADATA, "of tool-input-start, toolInputStart, tool-input-delta, .* toolCall is lost"),
    (losses.MakesNewToolCalls, METADATA, "the model answers.*of tool-call, toolCall is lost"),
    (streams.MakesNewDeltas, METADATA, "of text-delta, textDelta is lost.*part.replace"),
    (streams.MakesNewStarts, METADATA, "of text-start, textStart is lost"),
    (streams.MakesNewContent, METADATA, "the model answers.*of text, textExtra is lost"),
    (streams.MakesANewResult, METADATA, "the response's own metadata is lost"),
    (streams.CopiesRawParts, RAW, "raw parts came out that the model did not send"),
    (streams.PassesTheFirstRawPartOnly, RAW, "1 of 5 raw parts came out.*leave all of them out"),
    (streams.HoldsRawPartsBack, RAW, "raw parts changed places"),
    (streams.WritesIntoRawParts, RAW, "a raw value was changed"),
    (answers.SaysEverythingInManyPieces, THOUSAND, "4004 parts come out"),
    (answers.LooksAtAllThatItHasEachTime, THOUSAND, "the work grows with the square of the length"),
    (answers.LetsDeltasOfNoBlockPass, ORPHANS, "a block that never began.*'Hello, world.' passes as it is.*blocks"),
    (answers.LetsLateDeltasPass, ORPHANS, "a delta after its block has ended.*or leave it out"),
    (streams.KnowsOnlyBlocksThatBegan, UNFINISHED, "raised KeyError.*Expect no start before a delta"),
    (streams.MakesUpAnEnd, UNFINISHED, "a finish was made up, 'stop'"),
    (streams.WaitsForTheEndOfTheBlock, UNFINISHED, "Let go what is held when the stream ends"),
    (streams.LeavesOutErrors, ERRORS, "Pass the error part on"),
    (streams.AnswersNothingInstead, FAILURES, "do_generate, and the model fails at once.*Let the exception pass"),
    (streams.HidesTheCause, FAILURES, "raise your own `from` it"),
    (calls.LeavesTheModelOpen, LEAVING, "after 0 parts.*closed .0. times.*close=upstream.aclose"),
    (calls.RaisesWhenItIsLeft, LEAVING, "leaving raised RuntimeError"),
    (calls.ReadsThroughAGeneratorOfItsOwn, LEAVING, "_texts did not come to its end.*aclosing"),
    (calls.OpensAStreamForNothing, NOT_RETURNED, "do_generate came to its end.*closed .0. times. Close a stream that"),
    (calls.StoresAfterTheLoop, FINISH, "Act before the finish is passed on"),
    (calls.RetriesWithoutClosing, ATTEMPTS, "closed .0, 1. times. Close an attempt before you give it up"),
    (calls.RetriesAfterContent, SAID_AGAIN, "breaks after 'Hello, wo'.*Try again only while nothing has left"),
    (calls.AnswersWhenCancelled, CANCELLED, "do_generate is cancelled.*never BaseException"),
    (calls.EndsQuietlyWhenCancelled, CANCELLED, "do_stream is cancelled.*went on as if nothing had happened"),
    (calls.FailsWhenCancelled, CANCELLED, "raised RuntimeError"),
    (calls.LeavesTheModelOpen, CANCELLED, "still closes what it opened"),
    (calls.KeepsTheTextOnItself, AT_ONCE, "three do_stream at once.*local variables of the hook"),
    (calls.KeepsTheRequestOnItself, AT_ONCE, "three do_generate at once"),
    (calls.RemembersTheFirstModel, TWICE, "one member in two chains.*keep nothing of one chain on it"),
    (calls.LimitsTheTimeAroundAYield, IN_TURNS, "around a `yield`"),
    (calls.SetsAVariableAroundAYield, CONTEXT, "after three parts of a stream, its reader finds trace set"),
    (calls.ResetsAVariableAtTheEnd, CONTEXT, "its reader finds trace set"),
    (calls.SetsAVariable, CONTEXT, "do_generate set trace for its caller"),
    (calls.WritesIntoTheOptions, OPTIONS, "changed the caller's own options, in providerOptions"),
    (words.AnswersInPlaceOfARefusal, REFUSED, "before the model is asked: the call ends as .'ok'.*sees_denials = True"),
    (words.Rewords, WRITES, "another `prompt`.*Declare it"),
    (words.AddsATool, WRITES, "another `tools`"),
    (words.CoolsDown, WRITES, "do_stream.*another `temperature`.*'params'"),
    (words.Tags, WRITES, "another `metadata`"),
    (words.ShoutsWithoutSayingSo, OUTPUT, 'writes = frozenset.{"output"'),
    (words.AnswersByItself, ANSWERS, "the model was never asked.*may_answer = True"),
    (words.RefusesByLength, MONOTONE, "lets .* pass. Leave monotone out"),
    (words.NeverRefuses, MONOTONE, "refuses none of the answers.*answers="),
    (words.CountsAnAttemptToo, OUTCOME, "asked 1 times, and the outcome counts 2 attempts.*options.for_helper"),
    (words.EndsTheCallItself, OUTCOME, "the call has 0 outcomes"),
    (tools.ReadsTheOutputAsText, TOOL, "raised KeyError.*whatever the tool said"),
    (tools.ForgetsTheOutcome, TOOL, "raised Mistake: .forgets_the_outcome.wrap_t.*whatever the tool said"),
    (tools.MakesSure, TOOL_ONCE, "it ran 2 times, and had not failed"),
    (tools.NumbersTheCalls, TOOL_CALL, "the call '1' of 'look_up'.*Change its input alone"),
    (tools.SmoothsThingsOver, TOOL_DENIED, "the model is told ok .'all is well'.*Pass a denied outcome on"),
    (tools.AnswersForATool, TOOL_CANCELLED, "went on as if nothing had happened.*never BaseException"),
    (tools.KeepsTheCallOnItself, TOOLS_AT_ONCE, "and alone to ok.*local variables of the hook"),
    (tools.ChecksCallsInStreamsOnly, TURN, "ran with .*zebra.* generated, and with .*streamed"),
    (tools.MakesNewCalls, MARKS, "do_generate, around a turn: its tool-call of 'look_up'.*one.replace"),
]


@pytest.mark.parametrize(("factory", "promise", "advice"), BROKEN, ids=lambda value: getattr(value, "__name__", None))
def test_a_broken_middleware_is_caught_with_advice(factory: type[Middleware], promise: str, advice: str) -> None:
    interesting = ["a zebra"] if promise == FOUND_TWICE else []
    assert re.search(advice, faults(factory, interesting)[promise], re.DOTALL)


def faults(factory: Callable[[], Member], interesting: Sequence[str | GenerateResult] = ()) -> dict[str, str]:
    """What the suite says of a middleware, by promise."""
    try:
        check_middleware(factory, answers=interesting)
    except AssertionError as error:
        _, *told = str(error).split("\n\n")
        return dict(one.split(":\n", 1) for one in told)
    return {}


def test_every_promise_has_a_middleware_that_breaks_it() -> None:
    assert {promise for _, promise, _ in BROKEN} == {promise_of(check) for check in CHECKS}


def test_a_failure_says_who_breaks_how_much_on_which_backend() -> None:
    with pytest.raises(
        AssertionError, match=r"^KnowsAsyncioOnly breaks \d+ of 44 promises, on trio\.\n\na plain request"
    ):
        check_middleware(calls.KnowsAsyncioOnly)


def test_an_answer_of_interest_finds_what_the_usual_ones_do_not() -> None:
    check_middleware(FindsNothingUsual)
    with pytest.raises(AssertionError, match=r"the model streams 'z' 'e' 'b' 'r' 'a': the content differs"):
        check_middleware(FindsNothingUsual, answers=["zebra"])


def test_a_swallowed_refusal_reaches_the_caller_all_the_same() -> None:
    check_middleware(SwallowsRefusals)


class SwallowsRefusals(Passing):
    """With options of its own. The host knows all the same that its call was refused."""

    async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        own = CallOptions(**{name: getattr(options, name) for name in CallOptions.__match_args__ if name != "context"})
        try:
            return await model.do_generate(own)
        except Denial:
            return GenerateResult()

    async def parts(self, stream: PartStream) -> AsyncIterator[StreamPart]:
        with suppress(Denial):
            async for part in stream:
                yield part


class FindsNothingUsual(Passing):
    def whole(self, result: GenerateResult) -> GenerateResult:
        return with_text(result, lambda text: text.replace("zebra", "horse"))

    async def parts(self, stream: PartStream) -> AsyncIterator[StreamPart]:
        async for part in stream:
            yield part.replace(delta=part.delta.replace("zebra", "horse")) if isinstance(part, TextDelta) else part


def test_the_given_options_are_asked() -> None:
    only = CallOptions((user("Is it raining?"),))
    with pytest.raises(AssertionError, match="it raised PermissionError"):
        check_middleware(lambda: RefusesTopic("raining"), options=only)
    check_middleware(lambda: RefusesTopic("raining"))


class RefusesTopic(Middleware):
    def __init__(self, topic: str) -> None:
        super().__init__()
        self._topic = topic

    async def transform_params(self, options: CallOptions, kind: Kind, model: LanguageModel) -> CallOptions:
        if self._topic in user_text(options.prompt):
            raise PermissionError(self._topic)
        return options


def test_models_are_looked_up_in_the_given_surroundings() -> None:
    class Answered(Middleware):
        def bind(self, build: BuildContext) -> None:
            self._other = build.model("other")

        async def wrap_generate(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
            return await self._other.do_generate(options)

        async def wrap_stream(self, model: LanguageModel, options: CallOptions) -> StreamResult:
            return await self._other.do_stream(options)

    others = {"other": ScriptedModel(["I am another."], repeat=True)}
    check_middleware(Answered, surroundings=Surroundings(model=others.__getitem__))
    with pytest.raises(ConfigError, match="cannot be looked up by name"):
        check_middleware(Answered)


def test_a_member_that_hangs_is_left_after_a_while() -> None:
    with pytest.raises(AssertionError, match=r"it hangs: what it waits for did not come within 0\.02 s"):
        check_middleware(calls.NeverComesBack, patience=0.02)


def test_an_instance_is_no_factory() -> None:
    with pytest.raises(ConfigError, match="the class PassThrough, not an instance"):
        check_middleware(sound.PassThrough())  # type: ignore[arg-type]  # that is what is wrong with it


def test_a_factory_makes_a_fresh_member_each_time() -> None:
    member = sound.PassThrough()
    with pytest.raises(ConfigError, match="the factory gives the same PassThrough twice"):
        check_middleware(lambda: member)


def test_it_is_called_from_a_plain_test() -> None:
    async def test() -> None:
        check_middleware(sound.PassThrough)

    with pytest.raises(ConfigError, match="call it from a plain test"):
        anyio.run(test)


# ------------------------------------------------------------------------------------------------------------ roles


def test_roles_are_members_like_any_other() -> None:
    def refuses(text: str) -> Verdict:
        return deny("no-secrets", "I cannot say that.") if sound.SECRET in text else allow()

    class Before(RequestPolicy):
        def check(self, request: Request) -> Verdict:
            return refuses(request.text)

    class Held(ResponsePolicy):
        monotone = True

        def check(self, view: View) -> Verdict:
            return refuses(view.text)

    class Released(Held):
        streaming = Window(len(sound.SECRET))
        allow_partial_release = True

    class Counted(Observer):
        def on_outcome(self, outcome: Outcome) -> None:
            self.last = outcome

    class Replaced(ResponsePolicy):
        def check(self, view: View) -> Verdict:
            return replace("***") if sound.SECRET in view.text else allow()

    class Hidden(TextTransform):
        lookahead = len(sound.SECRET)
        applies_to = ("text", "reasoning", "tool_input")

        def transform(self, text: str) -> str:
            return text.replace(sound.SECRET, "***")

    class HiddenSlowly(TextTransform):
        async def transform(self, text: str) -> str:
            return text.replace(sound.SECRET, "***")

    class Matched(RegexTransform):
        def __init__(self) -> None:
            super().__init__(rf"\b{sound.SECRET}\b", "***")

    for factory in (Before, Held, Released, Counted, Replaced, Hidden, HiddenSlowly, Matched):
        check_middleware(factory, answers=SECRETS)


def test_a_role_that_fails_by_itself_is_caught_though_its_place_handles_that() -> None:
    class Forgets(ResponsePolicy):
        def check(self, view: View) -> Verdict:
            return allow() if view.text == sound.SECRET else None  # type: ignore[return-value]  # what is wrong

    assert "it failed by itself (ConfigError)" in faults(Forgets)[PLAIN]
