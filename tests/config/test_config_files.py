"""Configuration files: three formats that say the same, and files that cannot be read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from neurolink_mw.config import Pipeline
from neurolink_mw.errors import ConfigError

TOML = """
preset = "observe"
disable = ["lifecycle"]

[[middlewares]]
id = "default_settings"
priority = 1250
before = ["logging"]
when = { provider = "scripted*", options = { temperature = 0 } }
config = { temperature = 0.5, stop_sequences = ["END"], metadata = { team = "a" } }
"""
YAML = """
preset: observe
disable: [lifecycle]
middlewares:
  - id: default_settings
    priority: 1250
    before: [logging]
    when:
      provider: scripted*
      options: {temperature: 0}
    config:
      temperature: 0.5
      stop_sequences: [END]
      metadata: {team: a}
"""
JSON = """
{
  "$schema": "./pipeline.schema.json",
  "preset": "observe",
  "disable": ["lifecycle"],
  "middlewares": [
    {
      "id": "default_settings", "priority": 1250, "before": ["logging"],
      "when": {"provider": "scripted*", "options": {"temperature": 0}},
      "config": {"temperature": 0.5, "stop_sequences": ["END"], "metadata": {"team": "a"}}
    }
  ]
}
"""


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def refused(path: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        Pipeline.from_config(path)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "text"), [("p.toml", TOML), ("p.yaml", YAML), ("p.YML", YAML), ("p.json", JSON)], ids=lambda v: v[:6]
)
def test_a_pipeline_is_the_same_in_every_format(tmp_path: Path, name: str, text: str) -> None:
    pipeline = Pipeline.from_config(write(tmp_path, name, text))
    assert pipeline.ids == ("default_settings", "logging")
    explained = pipeline.explain().to_json()
    in_toml = Pipeline.from_config(write(tmp_path, "other.toml", TOML)).explain().to_json()
    assert explained == in_toml


def test_a_path_may_be_a_string(tmp_path: Path) -> None:
    path = write(tmp_path, "p.json", '{"middlewares": ["logging"]}')
    assert Pipeline.from_config(str(path)).ids == ("logging",)


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_bytes(b'\xef\xbb\xbf{"middlewares": ["logging"]}')
    assert Pipeline.from_config(path).ids == ("logging",)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("p.json", '{"preset": "observe",\n\n}', "p.json, line 3, column 1: this is not JSON"),
        ("p.json", "", "p.json, line 1, column 1: this is not JSON"),
        ("p.toml", 'preset = "observe"\nmiddlewares = [\n', "p.toml: this is not TOML: Invalid value (at end"),
        ("p.toml", "preset\n", "p.toml: this is not TOML: Expected '=' after a key in a key/value pair (at line 1"),
        ("p.toml", "a = 1\na = 2\n", "p.toml: this is not TOML: Cannot overwrite a value (at line 2"),
        ("p.yaml", "preset: observe\nmiddlewares: [\n", "p.yaml, line 3, column 1: this is not YAML"),
        ("p.yaml", "preset: observe\npreset: other\n", "p.yaml, line 2: 'preset' stands twice in one mapping"),
        ("p.yaml", "a: 2024-13-45\n", "p.yaml: cannot be read: a number or a date in it is none"),
        ("p.json", '{"a": 1, "a": 2}', "p.json: 'a' stands twice in one object"),
        ("p.json", '{"a": ' + "1" * 5000 + "}", "p.json: cannot be read: a number or a date in it is none"),
        ("p.json", "[" * 100_000, "p.json: cannot be read: it is nested too deeply"),
        ("p.json", "[1, 2]", "p.json: a configuration is a mapping of options, not list"),
        ("p.yaml", "", "p.yaml: a configuration is a mapping of options, not NoneType"),
    ],
)
def test_a_file_that_cannot_be_parsed_is_named_with_the_line(tmp_path: Path, name: str, text: str, said: str) -> None:
    message = refused(write(tmp_path, name, text))
    assert message.startswith(f"{tmp_path}/{said}")
    assert "\n" not in message


def test_a_yaml_anchor_that_is_merged_in_is_no_duplicate(tmp_path: Path) -> None:
    text = """
    middlewares:
      - &first {id: logging, enabled: false}
      - {<<: *first, id: lifecycle}
    """
    assert Pipeline.from_config(write(tmp_path, "p.yaml", text)).ids == ()


def test_a_missing_file_is_named_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"^nowhere\.toml: there is no such file$"):
        Pipeline.from_config("./nowhere.toml")


@pytest.mark.parametrize("name", ["p.ini", "p", "toml"])
def test_an_unknown_suffix_is_refused_with_the_known_ones(tmp_path: Path, name: str) -> None:
    assert refused(write(tmp_path, name, "")).endswith("a file that ends in .toml, .json, .yaml, .yml")


def test_a_folder_and_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "latin.json").write_bytes(b'{"preset": "\xe9"}')
    assert refused(tmp_path / "folder.json").endswith("cannot be read as UTF-8 text: IsADirectoryError")
    assert refused(tmp_path / "latin.json").endswith("cannot be read as UTF-8 text: UnicodeDecodeError")


def test_without_the_extra_for_yaml_the_install_line_is_given(tmp_path: Path) -> None:
    path = write(tmp_path, "p.yaml", YAML)
    program = (
        "import sys; sys.modules['yaml'] = None\n"  # as if it were not installed
        "from neurolink_mw import Pipeline\n"
        "print(*Pipeline.validate(sys.argv[1]))"
    )
    ran = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True)
    assert ran.stdout == f"{path}: YAML needs an extra: pip install 'neurolink-mw[yaml]'\n"


@pytest.mark.parametrize("source", [None, [], 5])
def test_what_is_neither_a_path_nor_a_mapping_is_refused(source: object) -> None:
    with pytest.raises(ConfigError, match="a configuration is the path of a file, or a mapping of options"):
        Pipeline.from_config(source)  # type: ignore[arg-type]
