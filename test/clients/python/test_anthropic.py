import time

import anthropic
import pytest
from anthropic import beta_tool
from conftest import KEY, PNG, URL

client = anthropic.Anthropic(api_key=KEY, base_url=URL, max_retries=0)
MODELS = ["local/chat", "anthropic/claude-sonnet-5", "claude-sonnet-5"]


def asking(model, content="Good morning"):
    return {"model": model, "max_tokens": 500, "messages": [{"role": "user", "content": content}]}


def text_of(message):
    return "".join(block.text for block in message.content if block.type == "text")


@pytest.mark.parametrize("model", MODELS)
def test_messages_whole_and_streamed(model):
    whole = client.messages.create(**asking(model), system="Be brief.")
    with client.messages.stream(**asking(model), system="Be brief.") as stream:
        streamed = stream.get_final_message()
    assert text_of(streamed) == text_of(whole)
    assert streamed.usage.input_tokens == whole.usage.input_tokens
    assert streamed.usage.output_tokens == whole.usage.output_tokens


@pytest.mark.parametrize("model", ["local/chat", "claude-sonnet-5"])
@pytest.mark.parametrize("stream", [False, True])
def test_tool_runner(model, stream):
    cities = []

    @beta_tool
    def look_up(city: str) -> str:
        """The weather of a city.

        Args:
            city: Its name.
        """
        cities.append(city)
        return "rain"

    runner = client.beta.messages.tool_runner(**asking(model, 'look_up "Oslo"'), tools=[look_up], stream=stream)
    assert "rain" in text_of(runner.until_done())
    assert len(cities) == 1


def test_thinking_and_a_cached_prompt():
    answer = client.messages.create(
        **asking("claude-sonnet-5"),
        thinking={"type": "adaptive"},
        system=[{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
    )
    assert answer.content[0].type == "thinking"


def test_batch_from_its_requests_to_its_results():
    requests = [{"custom_id": name, "params": asking("local/chat")} for name in ("a", "b")]
    batch = client.messages.batches.create(requests=requests)
    while batch.processing_status != "ended":
        time.sleep(0.2)
        batch = client.messages.batches.retrieve(batch.id)
    assert batch.request_counts.succeeded == 2
    results = list(client.messages.batches.results(batch.id))
    assert sorted(each.custom_id for each in results) == ["a", "b"]
    assert "Good morning" in text_of(results[0].result.message)
    assert client.messages.batches.delete(batch.id).id == batch.id


def test_image():
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    answer = client.messages.create(**asking("local/chat", [image, {"type": "text", "text": "What is it?"}]))
    assert "I see" in text_of(answer)


def test_ping():
    with client.messages.stream(**asking("local/chat", "slow:1800")) as stream:
        assert "slow" in stream.get_final_text()


@pytest.mark.parametrize("model", MODELS)
def test_count_tokens(model):
    counted = {name: value for name, value in asking(model).items() if name != "max_tokens"}
    assert client.messages.count_tokens(**counted).input_tokens > 0


def test_models():
    assert "local/chat" in [model.id for model in client.models.list(limit=5)]
    assert client.models.retrieve("claude-sonnet-5").type == "model"


def test_errors():
    with pytest.raises(anthropic.NotFoundError):
        client.messages.create(**asking("claude-none"))
    with pytest.raises(anthropic.BadRequestError):
        client.messages.create(**{**asking("local/chat"), "max_tokens": 0})
    with pytest.raises(anthropic.AuthenticationError):
        client.with_options(api_key="live_wrong").messages.create(**asking("local/chat"))
