"""Structured output: JSON Schemas made fit for providers, values checked against them, types turned into them, and
answers brought back from what a model made of all that.

Pure functions of schemas and values. Calls to models and what a provider makes of a schema are elsewhere.
"""

from .answer_tool import AnswerContent, AnswerParts, AnswerTool, answer_from_content
from .answer_warnings import answer_warnings
from .answer_way import AnswerWay, choose_answer_way
from .check import SchemaChecker
from .coerce import Coerced, coerce_json
from .final_result import (
    FINAL_RESULT_DESCRIPTION,
    FINAL_RESULT_INSTRUCTION,
    FINAL_RESULT_TOOL_NAME,
    answer_schema,
    stringify_answer,
    tool_answer_instruction,
)
from .inline_refs import Inlined, inline_refs
from .instruction import append_json_schema_instruction
from .root import Wrapped, unwrap_root, wrap_root
from .schema_of import OutputSchema
from .strict_losses import strict_losses
from .strict_schema import strict_schema

__all__ = [
    "FINAL_RESULT_DESCRIPTION",
    "FINAL_RESULT_INSTRUCTION",
    "FINAL_RESULT_TOOL_NAME",
    "AnswerContent",
    "AnswerParts",
    "AnswerTool",
    "AnswerWay",
    "Coerced",
    "Inlined",
    "OutputSchema",
    "SchemaChecker",
    "Wrapped",
    "answer_from_content",
    "answer_schema",
    "answer_warnings",
    "append_json_schema_instruction",
    "choose_answer_way",
    "coerce_json",
    "inline_refs",
    "strict_losses",
    "strict_schema",
    "stringify_answer",
    "tool_answer_instruction",
    "unwrap_root",
    "wrap_root",
]
