"""The public `Pipeline`: members in their order, ready to be put around any model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ..errors import ConfigError, NeurolinkError
from ..pipeline import (
    Denied,
    DryRun,
    Explanation,
    Fault,
    Lint,
    Member,
    Statistics,
    Surroundings,
    Totals,
    Use,
    WrappedModel,
    explain,
)
from ..pipeline.effects import find_faults, find_faults_without_model, report
from ..pipeline.explain import dry_run, explain_placed
from ..pipeline.member import has_to_be_opened
from ..pipeline.wrap import wrap_placed
from ..plugins import Registry
from ..protocol import CallOptions, Kind, LanguageModel
from .load import load_file
from .opened import Opened
from .plan import Plan, make_plan
from .secrets import retold

Source = str | PathLike[str] | Mapping[str, Any]


class Pipeline:
    """Middlewares in their order, from code or from a configuration, around one model or many.

        pipeline = Pipeline.from_config("pipeline.toml")
        result = await pipeline.model.do_generate(options)

        pipeline = Pipeline([Logging()])
        model = pipeline.wrap(OpenAICompatibleModel("gpt-5", base_url=...))

    model: the model that `pipeline.model` wraps. registry: the plugins to take middlewares and models from; the
    installed ones unless given. statistics: keep figures of every call, for `pipeline.statistics`; or a `Statistics`
    to add them to. denied, lint: see `wrap_model`.
    """

    def __init__(
        self,
        members: Sequence[Member | Use] = (),
        *,
        model: LanguageModel | None = None,
        registry: Registry | None = None,
        statistics: bool | Statistics = False,
        denied: Denied = "refuse",
        lint: Lint = "error",
    ) -> None:
        plan = make_plan({"denied": denied, "lint": lint}, None, members, registry=registry)
        self._start(plan, members, model, _statistics(statistics))

    @classmethod
    def from_config(
        cls,
        source: Source,
        *,
        overrides: Mapping[str, Any] | None = None,
        members: Sequence[Member | Use] = (),
        registry: Registry | None = None,
        statistics: bool | Statistics = False,
    ) -> Self:
        """A pipeline from a file (TOML, YAML, JSON) or a mapping.

        overrides: a configuration laid over it. members: members given in code beside it. ConfigError or PluginError
        with one sentence for every fault, naming the file, the field and what is allowed.
        """
        if source is None:
            raise ConfigError("a configuration is the path of a file, or a mapping of options")
        if not isinstance(source, str | PathLike):
            return cls._from_mapping(source, overrides, members, registry, statistics)
        path = Path(source)
        raw = load_file(path)
        try:
            return cls._from_mapping(raw, overrides, members, registry, statistics)
        except NeurolinkError as error:
            raise retold(error, "\n".join(f"{path}: {line}" for line in str(error).splitlines())) from None

    @classmethod
    def _from_mapping(
        cls,
        source: Mapping[str, Any],
        overrides: Mapping[str, Any] | None,
        members: Sequence[Member | Use],
        registry: Registry | None,
        statistics: bool | Statistics,
    ) -> Self:
        pipeline = cls.__new__(cls)
        plan = make_plan(source, overrides, members, registry=registry)
        _report_order(plan)
        pipeline._start(plan, members, None, _statistics(statistics))
        return pipeline

    def _start(
        self, plan: Plan, members: Sequence[Member | Use], model: LanguageModel | None, statistics: Statistics | None
    ) -> None:
        self._plan = plan
        self._members = tuple(members)
        self._statistics = statistics
        registry = plan.registry
        events = registry.emit if registry.listens else None
        self._surroundings = Surroundings(model=registry.model, store=registry.store, events=events)
        self._opened: Opened | None = None
        with plan.secrets.kept_out():
            self._bare = _make_model(plan) if model is None and plan.model is not None else model
            self._model = self.wrap(self._bare) if self._bare is not None else None
            registry.announce(self)

    # -- what it is

    @property
    def model(self) -> LanguageModel:
        """The configured model with the pipeline around it. ConfigError where no model is named."""
        if self._model is None:
            raise ConfigError("this pipeline names no model: set model in its configuration, or use wrap(model)")
        return self._model

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the members, from the outside in."""
        return tuple(place.use.id for place in self._plan.placed)

    @property
    def statistics(self) -> Totals:
        """What all calls so far add up to. ConfigError where no statistics are kept."""
        if self._statistics is None:
            raise ConfigError("this pipeline keeps no statistics: build it with statistics=True")
        return self._statistics.totals()

    def explain(self, model: LanguageModel | None = None) -> Explanation:
        """The chain in both directions, why each member sits where it sits, what was left out and why."""
        wrapped = self.wrap(model) if model is not None else self._model
        if wrapped is None:
            return explain_placed(self._plan.placed, self._plan.left_out)
        if not isinstance(wrapped, WrappedModel):
            return Explanation(f"{wrapped.provider}:{wrapped.model_id}", (), self._plan.left_out)
        return explain(wrapped)

    @property
    def faults(self) -> tuple[Fault, ...]:
        """What is plainly wrong with the order of its members, and let pass by `lint = "warn"` or `"off"`."""
        if isinstance(self._model, WrappedModel):
            return tuple(find_faults(self._model.chain))
        return tuple(find_faults_without_model(self._plan.placed))

    @property
    def lint(self) -> Lint:
        """What its configuration says of such faults."""
        return self._plan.lint

    async def dry_run(self, options: CallOptions, kind: Kind = "generate") -> DryRun:
        """What each member does to a request, without asking a model."""
        return await dry_run(self.model, options, kind)

    @classmethod
    def validate(cls, source: Source, *, registry: Registry | None = None) -> list[str]:
        """Everything that is wrong with a configuration, one sentence each; an empty list if nothing is."""
        try:
            cls.from_config(source, registry=registry)
        except NeurolinkError as error:
            return str(error).splitlines()
        return []

    # -- using it

    def wrap(
        self, model: LanguageModel, *, overrides: Mapping[str, Any] | None = None, members: Sequence[Member | Use] = ()
    ) -> LanguageModel:
        """The model with this pipeline around it.

        overrides: a configuration laid over this one's, for this model or this one call. members: more members, for
        it alone. A member whose config stays the same is shared, one whose config changes is made anew.
        """
        if overrides or members:
            return self._derive(overrides or {}, members).wrap(model)
        with self._plan.secrets.kept_out():
            return wrap_placed(
                model,
                self._plan.placed,
                left_out=self._plan.left_out,
                statistics=self._statistics,
                surroundings=self._surroundings,
                denied=self._plan.denied,
                lint=self._plan.lint,
            )

    def _derive(self, overrides: Mapping[str, Any], members: Sequence[Member | Use]) -> Pipeline:
        everybody = (*self._members, *members)
        plan = make_plan(None, overrides, everybody, earlier=self._plan)
        if "model" in overrides:
            raise ConfigError("model: it is the one given to wrap(model), and cannot be named beside it")
        mine = {id(place.use.member) for place in self._plan.placed}
        for place in plan.placed:
            member = place.use.member
            if id(member) not in mine and has_to_be_opened(member):
                raise ConfigError(f"{member.id} has to be opened with its pipeline: it cannot be added for one call")
        derived = Pipeline.__new__(Pipeline)
        plan.model = None
        derived._start(plan, everybody, None, self._statistics)
        return derived

    async def __aenter__(self) -> Self:
        """Open the members, inner ones first; they may start background work. Closed in reverse."""
        if self._opened is not None:
            raise RuntimeError("this pipeline is open already")
        self._opened = opened = Opened()
        try:
            await opened.start()
            close_model = getattr(self._bare, "aclose", None)
            if close_model is not None and self._plan.model is not None:  # a model given in code is its giver's
                opened.add("model", close_model)
            for place in reversed(self._plan.placed):
                await place.use.member.open(opened.tasks)
                opened.add(place.use.id, place.use.member.aclose)
        except BaseException as error:
            self._opened = None
            await opened.aclose(error)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        opened, self._opened = self._opened, None
        return None if opened is None else await opened.aclose(error)

    def __repr__(self) -> str:
        model = f"{self._bare.provider}:{self._bare.model_id}" if self._bare is not None else "no model"
        return f"Pipeline([{', '.join(self.ids)}], {model})"


def _statistics(wanted: bool | Statistics) -> Statistics | None:
    if isinstance(wanted, Statistics):
        return wanted
    return Statistics() if wanted else None


def _report_order(plan: Plan) -> None:
    """Look at the order of members that are around no model yet; where there is one, `wrap` looks."""
    if plan.model is None:
        report(find_faults_without_model(plan.placed), plan.lint)


def _make_model(plan: Plan) -> LanguageModel:
    assert plan.model is not None
    try:
        return plan.registry.make_model(plan.model.provider, plan.model.model_id, **plan.model.settings)
    except NeurolinkError as error:
        raise retold(error, f"model: {error}") from None
