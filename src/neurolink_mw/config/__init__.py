"""Configuration: a file or a mapping becomes a typed config, and the typed config a `Pipeline`.

What a middleware's own options mean is its `Config`'s business; what a chain is, the pipeline's.
"""

from .json_schema import json_schema
from .pipeline import Pipeline
from .presets import PRESETS, Preset
from .schema import MemberConfig, ModelConfig, PipelineConfig, WhenConfig

__all__ = [
    "PRESETS",
    "MemberConfig",
    "ModelConfig",
    "Pipeline",
    "PipelineConfig",
    "Preset",
    "WhenConfig",
    "json_schema",
]
