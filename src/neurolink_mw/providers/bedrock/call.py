"""One call on its way: what is sent, what is sent instead where it is refused, and how its failures are told."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Final

from ...errors import ProviderError, ProviderTimeoutError
from ...protocol import CallOptions, CallWarning
from ..common.headers import header_fault
from .client import Client
from .errors import ErrorReader
from .inference_profile import has_no_profile, profile_ids, wants_profile
from .pump import Answer, Event, Pump
from .readings import head_of
from .repair import repair
from .request import Expected, build_request, expected_of
from .threads import NoThread, Threads

_MOST_PROFILES: Final = 1_000
_profiles: dict[tuple[str | None, str | None, str], str] = {}
"""Which profile has answered for a model, by host, region and model id: one is found out once in a process."""


class Ids:
    """The id that a model is called by: its own, until Bedrock asks for an inference profile and one has answered."""

    def __init__(self, model_id: str, region: str | None, host: str | None) -> None:
        self.own = model_id
        self._region = region
        self._place = (host, region, model_id)

    @property
    def current(self) -> str:
        return _profiles.get(self._place, self.own)

    def others(self, than: str) -> Iterator[str]:
        """The ids to try where one is refused for the want of a profile. One that has answered another account may
        have none for this one: then all are tried, the model's own first."""
        return (id for id in (self.own, *profile_ids(self.own, self._region)) if id != than)

    def answered(self, id: str) -> None:
        if id == self.own:
            _profiles.pop(self._place, None)
        else:
            if len(_profiles) >= _MOST_PROFILES:
                _profiles.clear()
            _profiles[self._place] = id


class Call:
    """What is sent, and what came of it. Raises InvalidRequestError for what cannot be sent.

    `await send()`, then `pump` is the one that holds the stream. native: the arguments of the client's method; it and
    `warnings` change where the request was repaired.
    """

    def __init__(
        self, client: Client, threads: Threads, ids: Ids, options: CallOptions, errors: ErrorReader, *, stream: bool
    ) -> None:
        self._headers: dict[str, str | None] = {}
        if options.headers and client.sends_headers:
            self._headers = dict(options.headers)
            if (fault := header_fault(self._headers)) is not None:
                raise errors.refused(fault)
            options = options.replace(headers=None)
        native, warnings = build_request(ids.own, options, provider=errors.provider or "", stream=stream)
        self.native: dict[str, object] = {**native, "modelId": ids.current}
        self.warnings: tuple[CallWarning, ...] = warnings
        self.expected: Expected = expected_of(options, native)
        self.errors = errors
        self._client = client.calls
        self._threads = threads
        self._ids = ids
        self._stream = stream
        self._operation = "ConverseStream" if stream else "Converse"

    async def send(self) -> Answer:
        """A good answer, after one repair at most, by whichever id has one. Raises ProviderError."""
        others = self._ids.others(than=self.model_id)
        remembered = self.model_id != self._ids.own
        refused: BaseException | None = None  # for the want of a profile, the first time
        repaired = False
        while (answer := await self._ask()) is None:
            failure = self.pump.failure
            assert failure is not None
            response = _response(failure) or {}
            if wants_profile(response) or ((remembered or refused is not None) and has_no_profile(response)):
                refused = refused or failure
                if (other := next(others, None)) is None:
                    raise self.error(refused, during=_BEFORE)
                self.native = {**self.native, "modelId": other}
            elif not repaired and (instead := repair(response, self.native)) is not None:
                repaired = True
                self.native, warning = instead
                self.warnings = (*self.warnings, warning)
            else:
                raise self.error(failure, during=_BEFORE)
        self._ids.answered(self.model_id)
        self.errors.request_id = head_of(answer.get("ResponseMetadata"), None).id
        return answer

    @property
    def model_id(self) -> str:
        """The id that is called by."""
        return str(self.native["modelId"])

    async def _ask(self) -> Answer | None:
        self.pump = Pump(self._threads, partial(self._run, self.native), headers=self._headers)
        try:
            return await self.pump.answer()
        except BaseException:
            self.pump.abort()
            raise

    def _run(self, native: Mapping[str, object]) -> tuple[Answer, Iterable[Event] | None]:
        """In a thread: all of boto3 that may block."""
        if not self._stream:
            return self._client.converse(**native), None
        answer = dict(self._client.converse_stream(**native))
        return answer, answer.pop("stream")

    def error(self, failure: BaseException, *, during: str, begun: bool = False) -> ProviderError:
        """What a failure of the client is to the caller. during, begun: as in `ErrorReader.of_transport`.

        The failure itself must not become a cause: botocore's hold the request.
        """
        if isinstance(failure, NoThread):
            return ProviderTimeoutError(str(failure), provider=self.errors.provider, model_id=self.errors.model_id)
        response = _response(failure)
        if response is not None:
            in_stream = any(cls.__name__ == "EventStreamError" for cls in type(failure).__mro__)
            return self.errors.of_client_error(response, self._operation, in_stream=in_stream)
        return self.errors.of_transport(failure, during=during, begun=begun)


_BEFORE = "before the answer began"


def _response(failure: BaseException) -> Mapping[str, object] | None:
    """The answer that botocore made a ClientError of, or an EventStreamError."""
    response = getattr(failure, "response", None)
    return response if isinstance(response, Mapping) and "Error" in response else None
