import json
import time

import openai
import pytest
from conftest import KEY, URL
from pydantic import BaseModel

client = openai.OpenAI(api_key=KEY, base_url=f"{URL}/v1", max_retries=0)


class Weather(BaseModel):
    city: str
    degrees: float


TOOL = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}


def says(content):
    return [{"role": "user", "content": content}]


@pytest.mark.parametrize("model", ["local/chat", "openai/gpt-4.1-mini", "openai/gpt-5.5", "anthropic/claude-sonnet-5"])
def test_chat_whole_and_streamed(model):
    whole = client.chat.completions.create(model=model, messages=says("Good morning"))
    with client.chat.completions.stream(
        model=model, messages=says("Good morning"), stream_options={"include_usage": True}
    ) as stream:
        streamed = stream.get_final_completion()
    assert streamed.choices[0].message.content == whole.choices[0].message.content
    assert streamed.usage.total_tokens == whole.usage.total_tokens


def test_chat_tools_streamed():
    tools = [{"type": "function", "function": {"name": "look_up", "strict": True, "parameters": TOOL}}]
    messages = says('look_up "Oslo"')
    with client.chat.completions.stream(model="local/chat", messages=messages, tools=tools) as stream:
        message = stream.get_final_completion().choices[0].message
    call = message.tool_calls[0]
    assert call.function.parsed_arguments == {"city": "Oslo"}
    messages += [message, {"role": "tool", "tool_call_id": call.id, "content": "rain"}]
    answer = client.chat.completions.create(model="local/chat", messages=messages, tools=tools)
    assert "rain" in answer.choices[0].message.content


def test_chat_object():
    answer = client.chat.completions.parse(
        model="local/chat", messages=says('"Oslo" has 7 degrees'), response_format=Weather
    )
    assert answer.choices[0].message.parsed == Weather(city="Oslo", degrees=7)


def test_chat_ping():
    stream = client.chat.completions.create(model="local/chat", messages=says("slow:1800"), stream=True)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)
    assert "slow" in text


@pytest.mark.parametrize("model", ["local/chat", "openai/gpt-5.5"])
def test_responses_whole_and_streamed(model):
    whole = client.responses.create(model=model, input="Good morning")
    with client.responses.stream(model=model, input="Good morning") as stream:
        streamed = stream.get_final_response()
    assert streamed.output_text == whole.output_text
    assert streamed.usage == whole.usage


@pytest.mark.parametrize("model", ["local/chat", "openai/gpt-5.5"])
def test_responses_tool_result_with_the_whole_output(model):
    tools = [{"type": "function", "name": "look_up", "strict": True, "parameters": TOOL}]
    conversation = says('look_up "Oslo"')
    first = client.responses.create(model=model, input=conversation, tools=tools)
    call = next(item for item in first.output if item.type == "function_call")
    conversation += first.output
    conversation += [{"type": "function_call_output", "call_id": call.call_id, "output": "rain"}]
    assert client.responses.create(model=model, input=conversation, tools=tools).output_text


def test_responses_object():
    answer = client.responses.parse(model="local/chat", input='"Oslo" has 7 degrees', text_format=Weather)
    assert answer.output_parsed == Weather(city="Oslo", degrees=7)


@pytest.mark.parametrize(
    "model", ["local/chat", "openai/gpt-5.5", "anthropic/claude-sonnet-5", "google/gemini-2.5-flash"]
)
def test_responses_in_the_background(model):
    polled = client.responses.create(model=model, input="Good morning", background=True)
    assert polled.status == "queued"
    while polled.status in ("queued", "in_progress"):
        time.sleep(0.05)
        polled = client.responses.retrieve(polled.id)
    assert polled.status == "completed"
    assert polled.output_text

    created = client.responses.create(model=model, input="Good morning", background=True, stream=True)
    events = list(created)
    assert [event.sequence_number for event in events] == list(range(len(events)))
    final = events[-1].response
    assert final.output_text == polled.output_text
    assert list(client.responses.retrieve(final.id, stream=True, starting_after=3)) == events[4:]
    with client.responses.stream(response_id=final.id, starting_after=0) as stream:
        assert stream.get_final_response().output_text == polled.output_text


def test_responses_in_the_background_cancelled():
    running = client.responses.create(model="local/chat", input="slow:20000", background=True)
    cancelled = client.responses.cancel(running.id)
    assert cancelled.status == "cancelled"
    assert client.responses.cancel(running.id) == cancelled
    with pytest.raises(openai.BadRequestError):
        client.responses.cancel(client.responses.create(model="local/chat", input="Hello").id)


def test_responses_ping():
    with client.responses.stream(model="local/chat", input="slow:1800") as stream:
        assert "slow" in stream.get_final_response().output_text


def test_embeddings():
    answer = client.embeddings.create(model="local/embeddings", input=["one", "two"])
    assert [len(each.embedding) > 100 for each in answer.data] == [True, True]


def test_batch_from_its_file_to_its_results():
    body = {"model": "local/embeddings", "input": "A lighthouse"}
    lines = [{"custom_id": name, "method": "POST", "url": "/v1/embeddings", "body": body} for name in ("a", "b")]
    text = "\n".join(json.dumps(line) for line in lines)
    file = client.files.create(file=("in.jsonl", text.encode()), purpose="batch")
    batch = client.batches.create(input_file_id=file.id, endpoint="/v1/embeddings", completion_window="24h")
    while batch.status in ("validating", "in_progress", "finalizing"):
        time.sleep(0.2)
        batch = client.batches.retrieve(batch.id)
    assert (batch.status, batch.request_counts.completed) == ("completed", 2)
    results = [json.loads(line) for line in client.files.content(batch.output_file_id).text.splitlines()]
    assert sorted(result["custom_id"] for result in results) == ["a", "b"]
    assert batch.id in [each.id for each in client.batches.list(limit=1)]


def test_images():
    answer = client.images.generate(model="local/image", prompt="a fjord", size="256x256", response_format="b64_json")
    assert answer.data[0].b64_json.startswith("iVBOR")


def test_files():
    content = b'{"custom_id":"1"}\n'
    file = client.files.create(
        file=("requests.jsonl", content),
        purpose="batch",
        expires_after={"anchor": "created_at", "seconds": 3600},
    )
    assert (file.filename, file.bytes, file.expires_at - file.created_at) == ("requests.jsonl", len(content), 3600)
    assert client.files.content(file.id).read() == content
    assert file in list(client.files.list(purpose="batch", limit=1))
    assert client.files.retrieve(file.id) == file
    assert client.files.delete(file.id).deleted
    with pytest.raises(openai.NotFoundError):
        client.files.retrieve(file.id)


def test_models():
    assert "local/chat" in [model.id for model in client.models.list()]
    assert client.models.retrieve("local/chat").id == "local/chat"


def test_errors():
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(model="local/none", messages=says("Hello"))
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(model="local/chat", messages=says("Hello"), temperature="hot")
    assert refused.value.param == "temperature"
    with pytest.raises(openai.AuthenticationError):
        client.with_options(api_key="live_wrong").responses.create(model="local/chat", input="Hello")
