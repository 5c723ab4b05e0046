"""Structured output: JSON Schemas made fit for providers, values checked against them, types turned into them.

Pure functions of schemas and values. Tools, calls to models and what a provider makes of a schema are elsewhere.
"""

from .check import SchemaChecker
from .inline_refs import Inlined, inline_refs
from .instruction import append_json_schema_instruction
from .root import Wrapped, unwrap_root, wrap_root
from .schema_of import OutputSchema

__all__ = [
    "Inlined",
    "OutputSchema",
    "SchemaChecker",
    "Wrapped",
    "append_json_schema_instruction",
    "inline_refs",
    "unwrap_root",
    "wrap_root",
]
