"""A rewriting by a regular expression, whose lookahead is worked out from the pattern."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ..errors import ConfigError
from .lookahead import RewritingBlock
from .match_lookahead import MatchLookahead
from .reach import reach_of
from .text_transform import TextTransform


class RegexTransform(TextTransform):
    r"""Replaces what a pattern matches.

        RegexTransform(r"\b\d{3}-\d{2}-\d{4}\b", "[ssn]", id="redact_ssn")

    pattern: a text or a compiled pattern, whose matches must have a longest: `\S+@\S+` is refused, `\S{1,64}@\S{1,64}`
    works. repl: as for `re.sub`, a template or a function of the match. id: its name in the chain; two of them in one
    chain need two. applies_to: see `TextTransform`.
    """

    def __init__(
        self,
        pattern: str | re.Pattern[str],
        repl: str | Callable[[re.Match[str]], str],
        *,
        id: str | None = None,
        applies_to: Sequence[str] = ("text",),
    ) -> None:
        super().__init__()
        if id is not None:
            self.id = id  # type: ignore[misc]  # a chain may have several
        text = pattern.pattern if isinstance(pattern, re.Pattern) else pattern
        if not isinstance(text, str) or not (isinstance(repl, str) or callable(repl)):
            raise ConfigError(f"{self.id} takes a pattern, and a text or a function of the match to put in its place")
        try:
            self._pattern = re.compile(pattern)
            if isinstance(repl, str):
                self._pattern.sub(repl, "")  # which looks at the template, also where nothing matches
        except (re.error, IndexError, OverflowError) as error:
            said = error.msg if isinstance(error, re.error) else str(error)
            raise ConfigError(f"{self.id}: this is no regular expression, or no template for it: {said}") from None
        self._repl = repl
        self.lookahead = self._reach = reach_of(self._pattern, self.id)
        self.applies_to = applies_to

    def transform(self, text: str) -> str:
        return self._pattern.sub(self._repl, text)

    def begin_block(self) -> RewritingBlock:
        if type(self).transform is not RegexTransform.transform:
            return super().begin_block()  # somebody does more with the text
        return MatchLookahead(self._pattern, self._repl, self._reach)
