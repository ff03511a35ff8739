"""What LangChain's standard tests need to know of a model behind the service.

https://reference.langchain.com/python/langchain-tests/ : a subclass for each API.
"""

import base64
import io
import wave

import httpx
import pytest
from conftest import KEY, PNG, URL
from langchain_openai import ChatOpenAI
from langchain_tests.integration_tests import ChatModelIntegrationTests


def recording():
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setparams((1, 2, 16000, 0, "NONE", ""))
        writer.writeframes(bytes(16000))
    return file.getvalue()


class FetchedFile:
    def __init__(self, url):
        page = b"%PDF-1.4\n1 0 obj<</Type/Page>>endobj\n%%EOF\n"
        self.content = {"wav": recording(), "pdf": page}.get(url.rsplit(".", 1)[-1], base64.b64decode(PNG))


class StandardTests(ChatModelIntegrationTests):
    use_responses_api: bool

    @pytest.fixture(autouse=True)
    def files_without_a_network(self, monkeypatch):
        """The tests fetch their images."""
        monkeypatch.setattr(httpx, "get", lambda url, **_: FetchedFile(url))

    @property
    def chat_model_class(self):
        return ChatOpenAI

    @property
    def chat_model_params(self):
        return {
            "model": "local/chat",
            "api_key": KEY,
            "base_url": f"{URL}/v1",
            "max_retries": 0,
            "stream_usage": True,
            "use_responses_api": self.use_responses_api,
        }

    @property
    def supports_image_inputs(self):
        return True

    @property
    def supports_audio_inputs(self):
        return True

    @property
    def supports_pdf_inputs(self):
        return True

    @property
    def supports_pdf_tool_message(self):
        return True

    @property
    def supports_image_tool_message(self):
        return True

    @property
    def supports_anthropic_inputs(self):
        return True

    @property
    def supports_json_mode(self):
        return True

    @property
    def supports_model_override(self):
        return True

    @property
    def model_override_value(self):
        return "openai/gpt-5.5"
