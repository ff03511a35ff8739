import pytest
from agents import (
    Agent,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from conftest import KEY, URL
from openai import AsyncOpenAI, NotFoundError
from pydantic import BaseModel

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("one_event_loop")]
# Traces would go to OpenAI.
set_tracing_disabled(True)


def chat(name):
    return OpenAIChatCompletionsModel(name, openai_client=AsyncOpenAI(api_key=KEY, base_url=f"{URL}/v1", max_retries=0))


def responses(name):
    return OpenAIResponsesModel(name, openai_client=AsyncOpenAI(api_key=KEY, base_url=f"{URL}/v1", max_retries=0))


FORMATS = pytest.mark.parametrize("make", [chat, responses])


class Weather(BaseModel):
    city: str
    degrees: float


async def streamed(agent, prompt):
    result = Runner.run_streamed(agent, prompt)
    types = [event.type async for event in result.stream_events()]
    assert "raw_response_event" in types
    return result.final_output


async def check_text_and_stream(model):
    agent = Agent(name="Guide", instructions="Be brief.", model=model, model_settings=ModelSettings(include_usage=True))
    whole = await Runner.run(agent, "Good morning")
    assert whole.final_output == await streamed(agent, "Good morning")
    assert whole.context_wrapper.usage.total_tokens > 0


@FORMATS
async def test_text_and_stream(make):
    await check_text_and_stream(make("local/chat"))


@pytest.mark.parametrize("name", ["local/chat", "gpt-5.5"])
async def test_three_turns_by_previous_response_id(name):
    agent = Agent(name="Guide", instructions="Be brief.", model=responses(name))
    previous = None
    for prompt in ["Good morning", "And now?", "The end"]:
        result = await Runner.run(agent, prompt, previous_response_id=previous)
        assert result.final_output
        previous = result.last_response_id
        assert previous


@pytest.mark.parametrize(("make", "name"), [(chat, "openai/gpt-4.1-mini"), (responses, "gpt-5.5")])
async def test_native_text_and_stream(make, name):
    await check_text_and_stream(make(name))


@FORMATS
async def test_ping(make):
    assert "slow" in await streamed(Agent(name="Guide", model=make("local/chat")), "slow:1800")


@pytest.mark.parametrize(("make", "name"), [(chat, "local/chat"), (responses, "local/chat"), (responses, "gpt-5.5")])
async def test_tools(make, name):
    cities = []

    @function_tool
    def look_up(city: str) -> str:
        """The weather of a city."""
        cities.append(city)
        return "rain"

    agent = Agent(name="Guide", model=make(name), tools=[look_up])
    whole = await Runner.run(agent, 'look_up "Oslo"')
    assert whole.final_output == await streamed(agent, 'look_up "Oslo"')
    assert len(cities) == 2
    again = await Runner.run(agent, [*whole.to_input_list(), {"role": "user", "content": "Good morning"}])
    assert again.final_output


@FORMATS
async def test_object(make):
    agent = Agent(name="Guide", model=make("local/chat"), output_type=Weather)
    assert (await Runner.run(agent, '"Oslo" has 7 degrees')).final_output == Weather(city="Oslo", degrees=7)


@FORMATS
async def test_handoff(make):
    model = make("local/chat")
    other = Agent(name="Poet", model=model, handoff_description="Writes poems")
    guide = Agent(name="Guide", model=model, handoffs=[other])
    result = await Runner.run(guide, "Now transfer to poet")
    assert result.last_agent is other


@FORMATS
async def test_errors(make):
    with pytest.raises(NotFoundError):
        await Runner.run(Agent(name="Guide", model=make("local/none")), "Hello")
