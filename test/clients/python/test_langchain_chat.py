import pytest
from langchain_standard import StandardTests

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("one_event_loop")]


class TestChat(StandardTests):
    use_responses_api = False
