"""Roles: what most middlewares are, without what they all get wrong. An author writes one method; the host makes it
hold for generate and stream alike, and owns its failures.

A policy judges (`RequestPolicy`, `ResponsePolicy`), a transform rewrites (`TextTransform`, `RegexTransform`), an
observer watches (`Observer`). Whatever fits none of these is a full `Middleware`.
"""

from .observer import Observer
from .regex_transform import RegexTransform
from .request_policy import RequestPolicy
from .response_policy import ResponsePolicy
from .role import Role
from .streaming import Hold, Pass, Streaming, Window
from .text_transform import TextTransform
from .verdict import Verdict, allow, deny, flag, replace
from .views import Request, View

__all__ = [
    "Hold",
    "Observer",
    "Pass",
    "RegexTransform",
    "Request",
    "RequestPolicy",
    "ResponsePolicy",
    "Role",
    "Streaming",
    "TextTransform",
    "Verdict",
    "View",
    "Window",
    "allow",
    "deny",
    "flag",
    "replace",
]
