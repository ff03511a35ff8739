import base64

import pytest
from conftest import KEY, PNG, URL
from google import genai
from google.genai import errors, types
from pydantic import BaseModel

client = genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=URL))
MODELS = ["local/chat", "google/gemini-2.5-flash", "gemini-2.5-flash", "openai/gpt-5.5"]


class Weather(BaseModel):
    city: str
    degrees: float


@pytest.mark.parametrize("model", MODELS)
def test_whole_and_streamed(model):
    request = {"model": model, "contents": "Good morning", "config": {"system_instruction": "Be brief."}}
    whole = client.models.generate_content(**request)
    chunks = list(client.models.generate_content_stream(**request))
    assert "".join(chunk.text or "" for chunk in chunks) == whole.text
    assert chunks[-1].usage_metadata.total_token_count == whole.usage_metadata.total_token_count


def test_stream_with_pings():
    chunks = client.models.generate_content_stream(model="local/chat", contents="slow:1800")
    assert "slow" in "".join(chunk.text or "" for chunk in chunks)


@pytest.mark.anyio
async def test_asynchronous_stream_with_pings():
    stream = await client.aio.models.generate_content_stream(model="local/chat", contents="slow:1800")
    assert "slow" in "".join([chunk.text or "" async for chunk in stream])


@pytest.mark.parametrize("model", ["local/chat", "gemini-2.5-flash"])
def test_automatic_function_calling(model):
    cities = []

    def look_up(city: str) -> str:
        """The weather of a city."""
        cities.append(city)
        return "rain"

    chat = client.chats.create(model=model, config=types.GenerateContentConfig(tools=[look_up]))
    assert "rain" in chat.send_message('look_up "Oslo"').text
    assert len(cities) == 1


def test_object():
    answer = client.models.generate_content(
        model="local/chat",
        contents='"Oslo" has 7 degrees',
        config={"response_mime_type": "application/json", "response_schema": Weather},
    )
    assert answer.parsed == Weather(city="Oslo", degrees=7)


def test_image():
    image = types.Part.from_bytes(data=base64.b64decode(PNG), mime_type="image/png")
    assert "I see" in client.models.generate_content(model="local/chat", contents=[image, "What is it?"]).text


@pytest.mark.parametrize("model", MODELS[:3])
def test_count_tokens(model):
    assert client.models.count_tokens(model=model, contents="Good morning").total_tokens > 0


def test_models():
    assert "models/local/chat" in [model.name for model in client.models.list(config={"page_size": 5})]
    assert client.models.get(model="local/chat").name == "models/local/chat"


def test_errors():
    with pytest.raises(errors.ClientError) as unknown:
        client.models.generate_content(model="gemini-none", contents="Hello")
    assert unknown.value.code == 404
    other = genai.Client(api_key="live_wrong", http_options=types.HttpOptions(base_url=URL))
    with pytest.raises(errors.ClientError) as refused:
        other.models.generate_content(model="local/chat", contents="Hello")
    assert refused.value.code == 401
