"""Native to V3: what an answer stands on, from citations, search results and fetched pages. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...protocol import JSON, Source
from ..common.readings import count, words
from .naming import camel_keys
from .options import KEY
from .request import Document

_DOCUMENTS: Final = frozenset({"page_location", "char_location", "content_block_location"})
_TOLD_BY_SOURCE: Final = frozenset({"type", "url", "title", "source", "document_index", "document_title"})


class SourceReader:
    """Makes the sources of one answer, since they are numbered in it.

    documents: those of the prompt in order, which citations name by their index; pages that the model fetched follow.
    """

    def __init__(self, documents: Sequence[Document] = ()) -> None:
        self._documents = list(documents)
        self._number = 0

    def cited(self, citation: object) -> Source | None:
        """The source of a citation. None for a document that is not known, such as one within a tool's result: V3 asks
        for its media type. The citation itself stays with the text that has it."""
        if not isinstance(citation, Mapping):
            return None
        kind = citation.get("type")
        metadata = {KEY: camel_keys({name: item for name, item in citation.items() if _is_told(name, item)})}
        if isinstance(kind, str) and kind in _DOCUMENTS:
            document = self._document(citation.get("document_index"))
            if document is None:
                return None
            title = words(citation.get("document_title")) or document.title
            return Source("document", self._id(), None, title, document.media_type, document.filename, metadata)
        address = words(citation.get("url")) or words(citation.get("source"))
        title = words(citation.get("title"))
        if address is None:
            return None
        if kind != "web_search_result_location" and not address.startswith(("http://", "https://")):
            return Source("document", self._id(), None, title or address, "text/plain", None, metadata)
        return Source("url", self._id(), address, title, provider_metadata=metadata)

    def of_result(self, block: Mapping[str, object]) -> list[Source]:
        """The pages that a search found. A page that was fetched may be cited later, as a document."""
        content = block.get("content")
        if block.get("type") == "web_fetch_tool_result":
            self._add_fetched(content)
        if block.get("type") != "web_search_tool_result" or not isinstance(content, list | tuple):
            return []
        pages = [page for page in content if isinstance(page, Mapping) and words(page.get("url")) is not None]
        return [
            Source(
                "url",
                self._id(),
                words(page.get("url")),
                words(page.get("title")),
                provider_metadata={KEY: {"pageAge": page.get("page_age")}},
            )
            for page in pages
        ]

    def _add_fetched(self, page: object) -> None:
        document = page.get("content") if isinstance(page, Mapping) else None
        if not isinstance(page, Mapping) or not isinstance(document, Mapping):
            return
        source = document.get("source")
        media_type = words(source.get("media_type")) if isinstance(source, Mapping) else None
        title = words(document.get("title")) or words(page.get("url"))
        self._documents.append(Document(title=title, filename=None, media_type=media_type or "text/plain"))

    def _document(self, index: object) -> Document | None:
        number = count(index)
        return None if number is None or number >= len(self._documents) else self._documents[number]

    def _id(self) -> str:
        self._number += 1
        return f"source-{self._number - 1}"


def _is_told(name: str, item: JSON) -> bool:
    return name not in _TOLD_BY_SOURCE and item is not None
