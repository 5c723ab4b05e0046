"""How long a provider asks to wait before the next try, from the headers of its answer."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds that a server asks to wait: `retry-after-ms`, else `retry-after` in seconds or as an HTTP date.

    A date is taken against the server's own `date`, so that a wrong clock on either side does not matter. headers:
    by names in lower case, or a mapping that does not care.
    """
    wait = _number(headers.get("retry-after-ms"))
    if wait is not None:
        return wait / 1000
    said = headers.get("retry-after")
    wait = _number(said)
    if wait is not None or not said:
        return wait
    moment = _moment(said)
    now = _moment(headers.get("date")) or time.time()
    return None if moment is None else max(0.0, moment - now)


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _moment(text: str | None) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp() if text else None
    except ValueError:
        return None
