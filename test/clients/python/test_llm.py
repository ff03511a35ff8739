"""The command `llm`, with our models in its extra-openai-models.yaml."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import KEY, PNG, URL

MODELS = f"""
- model_id: service
  model_name: local/chat
  api_base: {URL}/v1
  api_key_name: service
  supports_tools: true
  supports_schema: true
  vision: true
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("llm")
    (folder / "extra-openai-models.yaml").write_text(MODELS)
    (folder / "keys.json").write_text(json.dumps({"service": KEY}))
    (folder / "look_up.py").write_text(
        'def look_up(city: str) -> str:\n    "The weather of a city."\n    return "rain"\n'
    )
    return folder


def llm(home, *args):
    command = [str(Path(sys.executable).parent / "llm"), *args]
    environment = {**os.environ, "LLM_USER_PATH": str(home)}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL
    )


def say(home, *args):
    done = llm(home, *args)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("option", [[], ["--no-stream"]], ids=["stream", "whole"])
def test_prompt(home, option):
    assert "Good morning" in say(home, "-m", "service", *option, "-s", "Be brief.", "Good morning")


def test_conversation(home):
    assert "And now" in say(home, "-m", "service", "-c", "And now?")


@pytest.mark.parametrize("option", [[], ["--no-stream"]], ids=["stream", "whole"])
def test_tools(home, option):
    tool = ["--functions", str(home / "look_up.py")]
    assert "rain" in say(home, "-m", "service", *option, *tool, 'look_up "Oslo"')


def test_schema(home):
    answer = say(home, "-m", "service", "--schema", "city, degrees float", '"Oslo" has 7 degrees')
    assert json.loads(answer) == {"city": "Oslo", "degrees": 7}


def test_image(home, tmp_path):
    import base64

    file = tmp_path / "pixel.png"
    file.write_bytes(base64.b64decode(PNG))
    assert "I see" in say(home, "-m", "service", "-a", str(file), "What is it?")


def test_ping(home):
    assert "slow" in say(home, "-m", "service", "slow:1800")


def test_error(home):
    done = llm(home, "-m", "service", "error:400")
    assert done.returncode != 0
    assert "This is the error 400 that you asked for." in done.stderr
