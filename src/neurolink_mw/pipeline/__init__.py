"""The pipeline: what a middleware is, where it stands, and how a model and its members become one model.

It knows the protocol only: no provider, no plugin, no configuration file.
"""

from .build import BuildContext, Surroundings
from .conditions import When
from .effects import Fault, Lint
from .explain import Change, DryRun, Explanation, MemberView, dry_run, explain
from .member import Effect, Member, MiddlewareConfig, Stage
from .middleware import Middleware
from .outcome import Outcome, Status
from .place import Use
from .record import CallRecord, MemberRecord, MemberTotals, Statistics, Totals
from .rules import Mode, OnError, Rules
from .wrap import Denied, WrappedModel, wrap_model

__all__ = [
    "BuildContext",
    "CallRecord",
    "Change",
    "Denied",
    "DryRun",
    "Effect",
    "Explanation",
    "Fault",
    "Lint",
    "Member",
    "MemberRecord",
    "MemberTotals",
    "MemberView",
    "Middleware",
    "MiddlewareConfig",
    "Mode",
    "OnError",
    "Outcome",
    "Rules",
    "Stage",
    "Statistics",
    "Status",
    "Surroundings",
    "Totals",
    "Use",
    "When",
    "WrappedModel",
    "dry_run",
    "explain",
    "wrap_model",
]
