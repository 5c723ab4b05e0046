"""Rules: what a configuration says of one, and what it is compiled to, once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Literal, TypeAlias

from neurolink_mw import MiddlewareConfig
from neurolink_mw.errors import ConfigError
from pydantic import Field

from .attributes import OPEN, PARAMS, READERS, SAMPLE

if TYPE_CHECKING:
    import cel  # imported where it is used: it is slow, and a plugin is imported by every program

Effect: TypeAlias = Literal["allow", "deny", "flag"]
DEFAULT = "default"
"""The code of a call that no rule decided; no rule may be called so."""

FUNCTIONS = frozenset(
    {
        *("size", "contains", "startsWith", "endsWith", "matches"),
        *("int", "uint", "double", "string", "bytes", "dyn", "type", "timestamp", "duration"),
        *("getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear"),
        *("getHours", "getMinutes", "getSeconds", "getMilliseconds"),
    }
)
"""The functions that the engine has, beside operators and the macros has, all, exists, exists_one, map and filter."""

_LITERAL = r"""[rR]"[^"]*"|[rR]'[^']*'|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'"""
_STRINGS = re.compile(_LITERAL)
_PATTERNS = re.compile(rf"\.\s*matches\s*\(\s*({_LITERAL})\s*\)")
_BOUND = re.compile(r"\.\s*(?:all|exists|exists_one|map|filter)\s*\(\s*([A-Za-z_]\w*)\s*,")
_PARAMS = re.compile(r"\bparams\s*\.\s*([A-Za-z_]\w*)")
_PARSER_SAYS = re.compile(r"<input>:(\d+):(\d+): (.*)")


class Rule(MiddlewareConfig):
    """One rule. when: a CEL expression that is true where the rule holds. effect: what it then does. message: what a
    user gets who is denied by it. if_unknown: what is done where the expression cannot be evaluated."""

    name: str = Field(pattern=r"^[A-Za-z0-9_.-]+$", description="What reports and outcomes call it.")
    when: str = Field(min_length=1, description="A CEL expression over the attributes of the request.")
    effect: Effect = Field(description="allow and deny decide; flag is reported, and the next rule is asked.")
    message: str | None = Field(None, description="What the user gets instead of an answer.")
    if_unknown: Literal["deny", "skip"] = Field(
        "deny",
        description="What happens where the expression cannot be evaluated: the call is denied, or the rule skipped.",
    )


@dataclass(frozen=True)
class CompiledRule:
    """A rule that was checked. uses: the attributes that it looks at."""

    rule: Rule
    program: cel.Program
    uses: frozenset[str]

    def holds(self, context: cel.Context) -> bool | None:
        """Whether the rule holds; None where that cannot be told: something that it reads is absent, or of a type that
        does not fit. What the engine says is not passed on: it may quote a value of the request."""
        try:
            said = self.program.execute(context)
        except Exception:
            return None
        return said if isinstance(said, bool) else None


def compile_rules(rules: Sequence[Rule], *, where: str = "") -> tuple[CompiledRule, ...]:
    """All rules, in their order. where: what messages begin with, such as a file. ConfigError names each rule that
    cannot work, and why."""
    faults = [fault for rule in rules for fault in _faults(rule)]
    names = [rule.name for rule in rules]
    faults += [f"rule {name!r}: stands twice" for name in dict.fromkeys(names) if names.count(name) > 1]
    if faults:
        raise ConfigError("; ".join(f"{where}{fault}" for fault in faults))
    return tuple(_compiled(rule) for rule in rules)


def _compiled(rule: Rule) -> CompiledRule:
    import cel

    program = cel.compile(rule.when)
    return CompiledRule(rule, program, frozenset(program.variables()) & READERS.keys())


def _faults(rule: Rule) -> Iterator[str]:
    import cel

    if rule.name == DEFAULT:
        yield f"rule {rule.name!r}: that is what a call is reported by which no rule decided: take another name"
    try:
        program = cel.compile(rule.when)
    except ValueError as error:
        yield f"rule {rule.name!r}: when is no CEL expression: {_parser_says(error)}"
        return
    unknown = list(_unknown_names(rule.when, program))
    yield from (f"rule {rule.name!r}: {fault}" for fault in unknown)
    bad_patterns = [at for at, found in enumerate(_PATTERNS.finditer(rule.when), 1) if not _is_pattern(found[1])]
    for at in bad_patterns:
        yield f"rule {rule.name!r}: the pattern of matches() number {at} is no regular expression (RE2 syntax)"
    if not unknown and not bad_patterns:
        yield from (f"rule {rule.name!r}: {fault}" for fault in _tried(program))


def _parser_says(error: ValueError) -> str:
    found = _PARSER_SAYS.search(str(error))
    if found is None:
        return "it cannot be parsed"
    line, column, said = found.groups()
    return f"line {line}, column {column}: {said.partition(' expecting {')[0]}"


def _unknown_names(expression: str, program: cel.Program) -> Iterator[str]:
    """What would be found to be undefined only when a call comes. A key of `params` that does not exist would even look
    like one that is never set."""
    bare = _STRINGS.sub('""', expression)
    known = {*READERS, *_BOUND.findall(bare)}
    for name in program.variables():
        if name not in known:
            yield f"there is no attribute {name!r}{_hint(name, READERS)}"
    for name in program.functions():
        if name.isidentifier() and name not in FUNCTIONS:
            yield f"there is no function {name!r}{_hint(name, FUNCTIONS)}"
    for name in dict.fromkeys(_PARAMS.findall(bare)):
        if name not in PARAMS:
            yield f"there is no params.{name}{_hint(name, PARAMS)}"


def _hint(name: str, allowed: object) -> str:
    names = sorted(allowed)  # type: ignore[call-overload]
    close = get_close_matches(name, names, n=1)
    return f"; did you mean {close[0]!r}?" if close else f" (there are {', '.join(names)})"


def _is_pattern(literal: str) -> bool:
    import cel

    try:
        cel.evaluate(f'"".matches({literal})')
    except Exception:
        return False
    return True


def _tried(program: cel.Program) -> Iterator[str]:
    """What comes out for an ordinary request: a rule that cannot be told there can never be."""
    import cel

    try:
        said = program.execute(cel.Context(dict(SAMPLE)))
    except TypeError:
        if not OPEN & set(program.variables()):
            yield (
                "when combines values of types that do not fit; CEL does not convert: compare a whole number with 5, "
                "a fraction with 0.5, a text with 'a'"
            )
    except Exception:
        return  # it depends on what the caller's own keys are, or on values
    else:
        if not isinstance(said, bool):
            yield f"when gives {type(said).__name__}, and must be true or false"
