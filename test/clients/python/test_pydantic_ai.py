import pytest
from conftest import KEY, PNG, URL
from pydantic import BaseModel
from pydantic_ai import Agent, BinaryContent, ModelHTTPError, NativeOutput, ToolOutput, UsageLimits
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("one_event_loop")]


def chat(name):
    return OpenAIChatModel(name, provider=OpenAIProvider(api_key=KEY, base_url=f"{URL}/v1"))


def responses(name):
    return OpenAIResponsesModel(name, provider=OpenAIProvider(api_key=KEY, base_url=f"{URL}/v1"))


def messages(name):
    return AnthropicModel(name, provider=AnthropicProvider(api_key=KEY, base_url=URL))


def gemini(name):
    return GoogleModel(name, provider=GoogleProvider(api_key=KEY, base_url=URL))


FORMATS = pytest.mark.parametrize("make", [chat, responses, messages, gemini])
NATIVE = [
    (chat, "openai/gpt-4.1-mini"),
    (responses, "gpt-5.5"),
    (messages, "claude-sonnet-5"),
    (gemini, "gemini-2.5-flash"),
]


class Weather(BaseModel):
    city: str
    degrees: float


async def streamed(agent, prompt):
    async with agent.run_stream(prompt) as result:
        return await result.get_output(), result.usage


async def check_text_and_stream(model):
    agent = Agent(model, instructions="Be brief.", retries=0)
    whole = await agent.run("Good morning")
    output, usage = await streamed(agent, "Good morning")
    assert output == whole.output
    assert usage.output_tokens == whole.usage.output_tokens > 0


@FORMATS
async def test_text_and_stream(make):
    await check_text_and_stream(make("local/chat"))


@pytest.mark.parametrize(("make", "name"), NATIVE)
async def test_native_text_and_stream(make, name):
    await check_text_and_stream(make(name))


@FORMATS
async def test_ping(make):
    output, _ = await streamed(Agent(make("local/chat"), retries=0), "slow:1800")
    assert "slow" in output


@FORMATS
async def test_tools(make):
    cities = []
    agent = Agent(make("local/chat"), retries=0)

    @agent.tool_plain
    def look_up(city: str) -> str:
        """The weather of a city."""
        cities.append(city)
        return "rain"

    whole = await agent.run('look_up "Oslo"')
    assert "rain" in whole.output
    output, _ = await streamed(agent, 'look_up "Oslo"')
    assert output == whole.output
    assert cities == ["Oslo", "Oslo"]
    # The history is sent back unchanged.
    again = await agent.run("Good morning", message_history=whole.all_messages())
    assert "Good morning" in again.output


# Chat and Responses get the file in a user's message after the results.
@FORMATS
async def test_tools_that_return_files(make):
    cities = []
    agent = Agent(make("local/chat"), retries=0)

    @agent.tool_plain
    def look_up(city: str) -> BinaryContent:
        """A picture of a city."""
        cities.append(city)
        return BinaryContent.from_data_uri(f"data:image/png;base64,{PNG}")

    result = await agent.run('look_up "Oslo"', usage_limits=UsageLimits(request_limit=3))
    assert cities == ["Oslo"]
    assert result.output


# On Messages it sends a schema only to models that it knows.
@pytest.mark.parametrize(
    ("make", "output"),
    [(make, ToolOutput(Weather)) for make in (chat, responses, messages, gemini)]
    + [(make, NativeOutput(Weather)) for make in (chat, responses, gemini)],
)
async def test_object(make, output):
    result = await Agent(make("local/chat"), output_type=output, retries=0).run('"Oslo" has 7 degrees')
    assert result.output == Weather(city="Oslo", degrees=7)


@FORMATS
async def test_image(make):
    image = BinaryContent.from_data_uri(f"data:image/png;base64,{PNG}")
    assert "I see" in (await Agent(make("local/chat")).run([image, "What is it?"])).output


@FORMATS
async def test_errors(make):
    with pytest.raises(ModelHTTPError) as unknown:
        await Agent(make("local/none"), retries=0).run("Hello")
    assert unknown.value.status_code == 404
