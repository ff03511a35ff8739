import pytest
import tiktoken
from conftest import KEY, URL
from langchain_openai import OpenAIEmbeddings
from langchain_standard import StandardTests
from openai import BadRequestError

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("one_event_loop")]


class TestChat(StandardTests):
    use_responses_api = False


@pytest.fixture
def bytes_as_tokens(monkeypatch):
    """In place of OpenAI's tokenizer, which is fetched from the internet."""
    ranks = {bytes([byte]): byte for byte in range(256)}
    encoding = tiktoken.Encoding("bytes", pat_str=r"[\s\S]", mergeable_ranks=ranks, special_tokens={})
    monkeypatch.setattr(tiktoken, "encoding_for_model", lambda _: encoding)


def embeddings(**more):
    return OpenAIEmbeddings(model="local/embeddings", base_url=f"{URL}/v1", api_key=KEY, max_retries=0, **more)


def test_embeddings_of_tokens(bytes_as_tokens):
    one, two, again = embeddings().embed_documents(["one", "two", "one"])
    assert one == pytest.approx(again)
    assert one != pytest.approx(two)


def test_embeddings_of_more_texts_than_a_call_takes(bytes_as_tokens):
    texts = [f"text {number}" for number in range(300)]
    # The error message names the setting.
    with pytest.raises(BadRequestError, match="chunk_size"):
        embeddings().embed_documents(texts)
    assert len(embeddings(chunk_size=256).embed_documents(texts)) == 300
