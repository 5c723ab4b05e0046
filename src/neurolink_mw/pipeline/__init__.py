"""The pipeline: what a middleware is, where it stands, and how a model and its members become one model.

It knows the protocol only: no provider, no plugin, no configuration file.
"""

from .build import BuildContext, Surroundings
from .conditions import When
from .explain import Change, DryRun, Explanation, MemberView, dry_run, explain
from .middleware import Middleware, MiddlewareConfig, Stage
from .outcome import Outcome, Status
from .place import Use
from .record import CallRecord, MemberRecord, MemberTotals, Statistics, Totals
from .wrap import WrappedModel, wrap_model

__all__ = [
    "BuildContext",
    "CallRecord",
    "Change",
    "DryRun",
    "Explanation",
    "MemberRecord",
    "MemberTotals",
    "MemberView",
    "Middleware",
    "MiddlewareConfig",
    "Outcome",
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
