import os

# Otherwise prices are fetched at the import.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm
import pytest
from conftest import KEY, PNG, URL

# The prefix selects the format.
CHAT = {"model": "openai/local/chat", "api_base": f"{URL}/v1"}
MESSAGES = {"model": "anthropic/local/chat", "api_base": URL}
GEMINI = {"model": "gemini/local/chat", "api_base": f"{URL}/v1beta"}
FORMATS = pytest.mark.parametrize("target", [CHAT, MESSAGES, GEMINI], ids=["chat", "messages", "gemini"])
NATIVE = [
    {"model": "openai/openai/gpt-4.1-mini", "api_base": f"{URL}/v1"},
    {"model": "anthropic/claude-sonnet-5", "api_base": URL},
    {"model": "gemini/gemini-2.5-flash", "api_base": f"{URL}/v1beta"},
]
TOOL = {
    "type": "function",
    "function": {
        "name": "look_up",
        "description": "The weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def ask(target, content="Good morning", **more):
    messages = more.pop("messages", None) or [{"role": "user", "content": content}]
    return litellm.completion(**target, messages=messages, api_key=KEY, num_retries=0, **more)


def read(stream):
    chunks = list(stream)
    return litellm.stream_chunk_builder(chunks)


def check_whole_and_streamed(target):
    whole = ask(target)
    streamed = read(ask(target, stream=True, stream_options={"include_usage": True}))
    assert streamed.choices[0].message.content == whole.choices[0].message.content
    assert streamed.choices[0].finish_reason == whole.choices[0].finish_reason == "stop"
    assert streamed.usage.total_tokens == whole.usage.total_tokens


@FORMATS
def test_whole_and_streamed(target):
    check_whole_and_streamed(target)


@pytest.mark.parametrize("target", NATIVE, ids=["chat", "messages", "gemini"])
def test_native_whole_and_streamed(target):
    check_whole_and_streamed(target)


@FORMATS
def test_ping(target):
    assert "slow" in (read(ask(target, "slow:1800", stream=True)).choices[0].message.content or "")


@FORMATS
def test_tools(target):
    question = {"role": "user", "content": 'look_up "Oslo"'}
    message = ask(target, messages=[question], tools=[TOOL]).choices[0].message
    [call] = message.tool_calls
    assert (call.function.name, call.function.arguments.replace(" ", "")) == ("look_up", '{"city":"Oslo"}')
    result = {"role": "tool", "tool_call_id": call.id, "name": "look_up", "content": "rain"}
    answer = ask(target, messages=[question, message.model_dump(), result], tools=[TOOL])
    assert "rain" in answer.choices[0].message.content


@FORMATS
def test_image(target):
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
    content = [image, {"type": "text", "text": "What is it?"}]
    assert "I see" in ask(target, content).choices[0].message.content


def test_responses():
    target = {"model": "openai/local/chat", "api_base": f"{URL}/v1", "api_key": KEY}
    whole = litellm.responses(**target, input="Good morning")
    events = list(litellm.responses(**target, input="Good morning", stream=True))
    assert events[-1].type == "response.completed"
    assert events[-1].response.output[0].content[0].text == whole.output[0].content[0].text


def test_embeddings():
    answer = litellm.embedding(model="openai/local/embeddings", api_base=f"{URL}/v1", api_key=KEY, input=["one", "two"])
    assert len(answer.data) == 2


def test_embeddings_of_more_texts_than_a_call_takes():
    with pytest.raises(litellm.BadRequestError, match="at most 256 inputs"):
        litellm.embedding(
            model="openai/local/embeddings", api_base=f"{URL}/v1", api_key=KEY, num_retries=0, input=["text"] * 300
        )


def test_rerank_with_an_empty_document():
    answer = litellm.rerank(
        model="cohere/local/rerank", api_base=URL, api_key=KEY, query="fjord", documents=["", "a fjord"]
    )
    assert [result["index"] for result in answer.results] == [1, 0]


def test_images():
    answer = litellm.image_generation(
        model="openai/local/image", api_base=f"{URL}/v1", api_key=KEY, prompt="a fjord", size="256x256"
    )
    assert answer.data[0].url or answer.data[0].b64_json


@FORMATS
def test_errors(target):
    unknown = {name: value.replace("local/chat", "local/none") for name, value in target.items()}
    with pytest.raises(litellm.NotFoundError):
        ask(unknown)
    with pytest.raises(litellm.AuthenticationError):
        litellm.completion(**target, messages=[{"role": "user", "content": "Hello"}], api_key="live_wrong")
