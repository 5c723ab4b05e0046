"""`import neurolink_mw`: the fixed names, imported when first used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import neurolink_mw

FIXED = (
    *("wrap_model", "Use", "Pipeline", "Middleware", "Stage", "CallContext", "PartStream", "Outcome", "primed"),
    *("hookimpl", "CallOptions", "GenerateResult", "StreamResult", "LanguageModel", "DecisionModel"),
    *("to_json", "from_json"),
)


def ran(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize("name", FIXED)
def test_a_fixed_name_is_there(name: str) -> None:
    assert getattr(neurolink_mw, name) is not None
    assert name in neurolink_mw.__all__
    assert name in dir(neurolink_mw)


def test_every_public_name_can_be_imported_with_a_star() -> None:
    assert (
        ran("from neurolink_mw import *\nimport neurolink_mw as n\nprint(set(n.__all__) - set(globals()))") == "set()"
    )


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'neurolink_mw' has no attribute 'Pipelin'"):
        neurolink_mw.Pipelin  # noqa: B018  # the look-up raises


@pytest.mark.parametrize(
    "program",
    [
        "import neurolink_mw",
        "import neurolink_mw; [getattr(neurolink_mw, name) for name in neurolink_mw.__all__]",
        "from neurolink_mw import Pipeline; Pipeline.from_config({'middlewares': ['logging']})",
    ],
    ids=["import", "every name", "a pipeline"],
)
def test_no_client_library_is_imported_before_a_model_is_made(program: str) -> None:
    look = "import sys; print(sorted({'anthropic', 'boto3', 'httpx', 'httpx2', 'typer', 'rich'} & set(sys.modules)))"
    assert ran(f"{program}\n{look}") == "[]"


def test_a_bare_import_loads_none_of_its_rooms() -> None:
    look = "import sys, neurolink_mw; print([name for name in sys.modules if name.startswith('neurolink_mw.')])"
    assert ran(look) == "[]"


def test_a_built_in_is_imported_when_a_pipeline_uses_it_and_no_other() -> None:
    look = (
        "import sys; from neurolink_mw import Pipeline; Pipeline.from_config({'middlewares': ['logging']})\n"
        "print(sorted(name for name in sys.modules if name.startswith('neurolink_mw.middlewares.')))"
    )
    assert ran(look) == "['neurolink_mw.middlewares.logging']"
