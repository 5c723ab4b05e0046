"""The policy: rules in their order, the first that decides wins."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Literal

from neurolink_mw import MiddlewareConfig
from neurolink_mw.errors import ConfigError
from neurolink_mw.roles import Request, RequestPolicy, Verdict, allow, deny, flag
from pydantic import BaseModel, Field, ValidationError

from .attributes import context_of
from .rules import DEFAULT, Rule, compile_rules

UNKNOWN = "unknown"
"""What a code ends in, after a colon, where a rule could not be evaluated."""


class CelConfig(MiddlewareConfig):
    """default: what happens to a call that no rule decides. rules, or file: the rules in their order, here or in a TOML
    or JSON file that has them under `rules`. message: what a user gets who is denied, where the rule says nothing."""

    default: Literal["allow", "deny"] = Field(description="What happens to a call that no rule decides.")
    rules: tuple[Rule, ...] | None = Field(None, min_length=1, description="The rules, in their order.")
    file: Path | None = Field(None, description="A TOML or JSON file with the rules, under `rules`.")
    message: str | None = Field(None, description="What a denied user gets, where the rule says nothing.")


class _RulesFile(MiddlewareConfig):
    rules: tuple[Rule, ...] = Field(min_length=1)


class CelPolicy(RequestPolicy):
    """Allows, denies and flags requests by rules in CEL, over the model, the caller's metadata, tools and sizes.

        CelPolicy(default="allow", rules=[{"name": "no-pdf", "when": "'application/pdf' in files", "effect": "deny"}])

    The code of a denial is the name of its rule; `NAME:unknown` where the rule could not be evaluated, and `default`
    where none decided. ConfigError for rules that cannot work, naming each.
    """

    id = "cel"
    Config = CelConfig
    config: CelConfig

    def __init__(self, config: BaseModel | None = None, **values: object) -> None:
        super().__init__(config, **values)
        rules = _rules_of(self.config)
        _refuse_idle(rules, self.config.default)
        self.rules = compile_rules(rules, where="" if self.config.file is None else f"file: {self.config.file}: ")
        self._wanted = frozenset[str]().union(*(rule.uses for rule in self.rules))

    def check(self, request: Request) -> Verdict:
        context = context_of(request, self._wanted)
        flagged = []
        for compiled in self.rules:
            rule, holds = compiled.rule, compiled.holds(context)
            if holds is None and rule.if_unknown == "deny":
                return self._deny(f"{rule.name}:{UNKNOWN}", rule.message)
            if not holds:
                continue
            if rule.effect == "deny":
                return self._deny(rule.name, rule.message)
            if rule.effect == "allow":
                break
            flagged.append(rule.name)
        else:
            if self.config.default == "deny":
                return self._deny(DEFAULT, None)
        return flag(",".join(flagged)) if flagged else allow()

    def _deny(self, code: str, message: str | None) -> Verdict:
        said = self.config.message if message is None else message
        return deny(code) if said is None else deny(code, said)


def _rules_of(config: CelConfig) -> tuple[Rule, ...]:
    if config.rules is not None and config.file is None:
        return config.rules
    if config.file is not None and config.rules is None:
        return _load(config.file)
    raise ConfigError("give the rules, or the file that holds them" + (", not both" if config.rules else ""))


def _refuse_idle(rules: tuple[Rule, ...], default: str) -> None:
    """Rules and default that together do the same to every call, which nobody means."""
    effects = {rule.effect for rule in rules}
    if default == "allow" and effects == {"allow"}:
        raise ConfigError('default is "allow" and every rule allows, so nothing would be denied: set default = "deny"')
    if default == "deny" and "allow" not in effects:
        raise ConfigError('default is "deny" and no rule allows, so every call would be denied: set default = "allow"')


def _load(path: Path) -> tuple[Rule, ...]:
    """The rules of a file. ConfigError names it, and the place in it."""
    parse = {".toml": tomllib.loads, ".json": json.loads}.get(path.suffix.lower())
    if parse is None:
        raise ConfigError(f"file: {path}: rules are in a file that ends in .toml or .json")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(f"file: {path}: there is no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"file: {path}: cannot be read as UTF-8 text: {type(error).__name__}") from None
    try:
        return _RulesFile.model_validate(parse(text)).rules
    except ValidationError as error:
        raise ConfigError("; ".join(_invalid(path, error))) from None
    except (ValueError, RecursionError) as error:  # json says where; tomllib too
        where = f": {error}" if isinstance(error, tomllib.TOMLDecodeError | json.JSONDecodeError) else ""
        raise ConfigError(f"file: {path}: this is not {path.suffix[1:].upper()}{where}") from None


def _invalid(path: Path, error: ValidationError) -> list[str]:
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    return [f"file: {path}: {'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in faults]
