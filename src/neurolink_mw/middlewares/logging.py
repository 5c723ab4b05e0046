"""`logging`: one line in the standard library's log for each call, with its figures as fields of the record."""

from __future__ import annotations

import logging
from typing import ClassVar, Literal

from pydantic import Field

from ..pipeline import BuildContext, Middleware, MiddlewareConfig, Outcome, Stage
from ..pipeline.member import Effect
from ..protocol import CallOptions, GenerateResult, JSONObject, LanguageModel, Slot, StreamResult, to_json, user_text

Level = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]

_PROBLEMS = frozenset({"error", "denied"})


class LoggingConfig(MiddlewareConfig):
    """logger: its name. level / problem_level: for calls that went well / that failed or were denied. content: also
    log the user's text and the answer (off: they may be confidential). metadata: keys of the call's metadata to log.
    """

    logger: str = Field("neurolink_mw.calls", min_length=1)
    level: Level = "INFO"
    problem_level: Level = "WARNING"
    content: bool = False
    metadata: tuple[str, ...] = ()


class Logging(Middleware):
    """Logs the outcome of every call: who was asked and who answered, how it ended, how long it took, what it cost.

    The message is one readable line; the same figures are in the record's `call` attribute as JSON-compatible data,
    for a structured formatter. Content and secrets are never logged unless `content` asks for the former.
    """

    stage: ClassVar[int] = Stage.OBSERVE
    reads: ClassVar[frozenset[Effect]] = frozenset({"metadata"})
    needs_scope: ClassVar[bool | None] = True
    Config = LoggingConfig
    config: LoggingConfig

    def __init__(self, config: LoggingConfig | None = None, **values: object) -> None:
        super().__init__(config, **values)
        self._logger = logging.getLogger(self.config.logger)
        self._said: Slot[dict[int, dict[str, str]]] = Slot("logged content", {})
        if self.config.content:  # only then is there something to do on the way
            self.wrap_generate = self._keep_generated  # type: ignore[method-assign]
            self.wrap_stream = self._keep_streamed  # type: ignore[method-assign]

    def bind(self, build: BuildContext) -> None:
        build.observe(self._log)

    def _log(self, outcome: Outcome) -> None:
        level = logging.getLevelName(self.config.problem_level if outcome.status in _PROBLEMS else self.config.level)
        if self._logger.isEnabledFor(level):
            content = outcome.context.get(self._said).pop(id(outcome.context), {})
            self._logger.log(level, "%s", _sentence(outcome), extra={"call": {**self._figures(outcome), **content}})

    def _figures(self, outcome: Outcome) -> dict[str, object]:
        figures: dict[str, object] = {
            "request_id": outcome.request_id,
            "kind": outcome.kind,
            "provider": outcome.provider,
            "model_id": outcome.model_id,
            "status": outcome.status,
            "answered_by": outcome.answered_by,
            "finish_reason": outcome.finish_reason.unified if outcome.finish_reason else None,
            "attempts": outcome.attempts,
            "model_calls": outcome.model_calls,
            "duration_s": round(outcome.duration, 6),
            "parts": outcome.parts,
            "usage": to_json(outcome.usage.replace(raw=None)),
            "error": type(outcome.error).__name__ if outcome.error is not None else None,
        }
        metadata: JSONObject = outcome.metadata or {}
        figures |= {f"metadata.{key}": metadata[key] for key in self.config.metadata if key in metadata}
        return figures

    async def _keep_generated(self, model: LanguageModel, options: CallOptions) -> GenerateResult:
        self._keep(options, prompt=user_text(options.prompt))
        result = await model.do_generate(options)
        self._keep(options, answer=result.text)
        return result

    async def _keep_streamed(self, model: LanguageModel, options: CallOptions) -> StreamResult:
        self._keep(options, prompt=user_text(options.prompt))
        result = await model.do_stream(options)
        return result.collected(lambda answer: self._keep(options, answer=answer.text))

    def _keep(self, options: CallOptions, **content: str) -> None:
        context = options.context
        by_scope = context.get(self._said)
        if by_scope is self._said.default:  # the default is one dict for everybody: never write into it
            by_scope = {}
            context.set(self._said, by_scope)
        by_scope.setdefault(id(context.scope), {}).update(content)


def _sentence(outcome: Outcome) -> str:
    read, written = outcome.usage.input_tokens.total, outcome.usage.output_tokens.total
    words = [f"{outcome.kind} {outcome.provider}:{outcome.model_id} {outcome.status} in {outcome.duration:.3f} s"]
    if outcome.answered_by not in ("model", None):
        words.append(f"answered by {outcome.answered_by}")
    if read is not None or written is not None:
        words.append(f"{'?' if read is None else read} tokens in, {'?' if written is None else written} out")
    if outcome.attempts > 1:
        words.append(f"{outcome.attempts} attempts")
    if outcome.error is not None:
        words.append(type(outcome.error).__name__)
    return ", ".join(words)
