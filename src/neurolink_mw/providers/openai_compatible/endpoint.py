"""Where requests go, with which headers, and what of both is secret. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from ...errors import ConfigError
from ..common.headers import SECRET_NAME, VALUE, header_fault, secrets_of


class Endpoint:
    """The address of a server's chat completions and the headers of every call. `host` may be shown.

    Raises ConfigError for an address or a header that cannot be used; no message quotes a value.
    """

    def __init__(
        self, base_url: str, api_key: str | None, headers: Mapping[str, str], query_params: Mapping[str, str]
    ) -> None:
        try:
            url = urlsplit(base_url)
            host, port = url.hostname, url.port
        except ValueError:
            url, host, port = urlsplit(""), None, None
        if url.scheme not in ("http", "https") or not host:
            raise ConfigError("base_url is an http or https address, as in https://api.openai.com/v1")
        query = "&".join(filter(None, (url.query, urlencode(query_params))))
        path = url.path.rstrip("/") + "/chat/completions"
        self.url = urlunsplit((url.scheme, url.netloc, path, query, ""))
        self.host = host if port is None else f"{host}:{port}"
        self._headers: dict[str, str] = {name.lower(): text for name, text in headers.items()}
        fault = header_fault(self._headers)
        if api_key and (not VALUE.fullmatch(api_key) or api_key != api_key.strip()):
            fault = "api_key holds a character that a header cannot: is there a line break at its end?"
        if fault is not None:
            raise ConfigError(fault)
        if api_key:
            self._headers.setdefault("authorization", f"Bearer {api_key}")
        asked = (*parse_qsl(url.query, keep_blank_values=True), *query_params.items())
        named = [text for name, text in asked if SECRET_NAME.search(name)]
        password = unquote(url.password or "")
        login = f"{unquote(url.username or '')}:{password}" if password else ""
        self._secrets = [*named, *filter(None, (api_key, password, login))]

    def headers_for(self, headers: Mapping[str, str | None], accept: str) -> dict[str, str | None]:
        """The headers of one call: its own win, and a None takes one away."""
        own = {name.lower(): text for name, text in headers.items()}
        return {"content-type": "application/json", "accept": accept, **self._headers, **own}

    def secrets_in(self, headers: Mapping[str, str | None]) -> list[str]:
        """The texts of a call that no message may quote: keys, and the values of headers that are named like one."""
        return [*self._secrets, *secrets_of(headers)]
