"""The content blocks of Converse messages: what each costs, and how a tool's result is shortened."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from ..protocol import PREVIEW_LIMITS, estimate_json_tokens, estimate_text_tokens
from ..protocol.excerpt import excerpts, file_note
from ..protocol.tokens import FILE_TOKENS, IMAGE_TOKENS, estimate_file_tokens, estimate_unknown_tokens, json_text

Block: TypeAlias = Mapping[str, object]
"""One content block: its kind to its body."""

_TEXT_FORMATS: Final = frozenset({"txt", "md", "csv", "html"})
_OF_BLOCKS: Final = frozenset({"toolResult", "searchResult", "citationsContent"})
_FILES: Final = frozenset({"image", "document", "video", "audio"})


def blocks_of(body: Mapping[str, object]) -> list[Block]:
    """The content of a message, or of a block that has content of its own."""
    content = body.get("content")
    return [block for block in content if isinstance(block, Mapping)] if isinstance(content, list | tuple) else []


def estimate_block_tokens(block: Block, factor: float) -> int:
    """Tokens of a block; bytes are never counted as text."""
    return sum(_tokens(kind, body, factor) for kind, body in block.items())


def _tokens(kind: str, body: object, factor: float) -> int:
    if kind == "cachePoint":
        return 0
    if kind == "image":
        return IMAGE_TOKENS
    if kind in ("video", "audio"):
        return FILE_TOKENS
    if kind == "json":
        return estimate_json_tokens(body, factor=factor)
    if isinstance(body, str):
        return estimate_text_tokens(body, factor=factor)
    if isinstance(body, Mapping):
        if kind == "toolUse":
            return _tokens("text", body.get("name"), factor) + _tokens("json", body.get("input"), factor)
        if kind in _OF_BLOCKS:
            return sum(estimate_block_tokens(block, factor) for block in blocks_of(body))
        if kind == "document":
            return _document_tokens(body, factor)
        if kind == "guardContent":
            return estimate_block_tokens(body, factor)
        if kind == "reasoningContent":  # neither a signature nor redacted reasoning is text that the model reads
            return _tokens("text", body.get("reasoningText", ""), factor)
        if kind == "text" or "text" in body:
            return _tokens("text", body.get("text"), factor)
    return estimate_unknown_tokens(body, factor=factor)


def _document_tokens(document: Mapping[str, object], factor: float) -> int:
    source = document.get("source")
    if not isinstance(source, Mapping):
        return FILE_TOKENS
    if "text" in source:
        return _tokens("text", source["text"], factor)
    if "content" in source:
        return sum(estimate_block_tokens(block, factor) for block in blocks_of(source))
    kind = "text/" if document.get("format") in _TEXT_FORMATS else "application/"
    return estimate_file_tokens(kind, source.get("bytes"), factor=factor)


def previewed(block: Block) -> Block:
    """A tool result with its texts and its JSON shortened, and files described; itself where it is short. Any other
    block as it is."""
    result = block.get("toolResult")
    if not isinstance(result, Mapping):
        return block
    blocks = blocks_of(result)
    texts = [_text_of(one) for one in blocks]
    shown = iter(excerpts([text for text in texts if text is not None], PREVIEW_LIMITS))
    content = [one if text is None else _shown(one, text, next(shown)) for one, text in zip(blocks, texts, strict=True)]
    if all(now is before for now, before in zip(content, blocks, strict=True)):
        return block
    # Converse refuses blank text, which stands here for what another text shows.
    return {**block, "toolResult": {**result, "content": [one for one in content if one.get("text") != ""]}}


def _text_of(block: Block) -> str | None:
    """What a block becomes when it is shown as text; None for what stays as it is."""
    for kind, body in block.items():
        if kind == "text" and isinstance(body, str):
            return body
        if kind in ("json", "searchResult"):
            return json_text(body)
        if kind in _FILES:
            return _file_text(kind, body if isinstance(body, Mapping) else {})
    return None


def _file_text(kind: str, body: Mapping[str, object]) -> str:
    source = body.get("source")
    data = source.get("bytes") if isinstance(source, Mapping) else None
    return file_note(f"{body.get('format', '')} {kind}".strip(), len(data) if isinstance(data, bytes) else None)


def _shown(block: Block, text: str, shown: str) -> Block:
    return block if shown is text and not _FILES & block.keys() else {"text": shown}
