"""What the router refuses, as the libraries show it."""

import anthropic
import openai
from kit import GREETING, URL, by_anthropic, by_openai, case, chat_usage, has, raised, said, same

OPENAI = by_openai()
ANTHROPIC = by_anthropic()
PICTURE = "https://example.com/picture.png"


def chat(**options):
    return lambda: OPENAI.chat.completions.create(**{"model": "talk", "messages": said("Hi."), **options})


def responses(**options):
    return lambda: OPENAI.responses.create(**{"model": "talk", "input": "Hi.", **options})


def messages(**options):
    return lambda: ANTHROPIC.messages.create(**{"model": "talk", "max_tokens": 500, "messages": said("Hi."), **options})


@case("wrong token")
def wrong_token(used):
    wrong = openai.OpenAI(base_url=f"{URL}/v1", api_key="this-is-not-a-token")
    error = raised(openai.AuthenticationError, lambda: wrong.chat.completions.create(model="talk", messages=said("Hi.")))
    same((error.status_code, error.code), (401, "invalid_api_key"))
    has(error.message, "the token is missing, not known, or its run has ended")
    raised(openai.AuthenticationError, wrong.models.list)

    wrong = anthropic.Anthropic(base_url=URL, api_key="this-is-not-a-token")
    error = raised(
        anthropic.AuthenticationError, lambda: wrong.messages.create(model="talk", max_tokens=5, messages=said("Hi."))
    )
    same(error.body["error"]["type"], "authentication_error")


@case("model not admitted")
def model_not_admitted(used):
    for call in [chat(model="secret"), chat(model="Talk", stream=True), responses(model="secret")]:
        error = raised(openai.PermissionDeniedError, call)
        same((error.status_code, error.code, error.param), (403, "model_mismatch", "model"))
        has(error.message, "is not admitted for this run")
    raised(openai.PermissionDeniedError, lambda: OPENAI.embeddings.create(model="secret", input="one"))
    for call in [messages(model="secret"), messages(model="secret", stream=True)]:
        error = raised(anthropic.PermissionDeniedError, call)
        same(error.body["error"]["type"], "permission_error")
        has(error.body["error"]["message"], "the model `secret` is not admitted for this run")


@case("hosted tools")
def hosted_tools(used):
    error = raised(openai.PermissionDeniedError, responses(tools=[{"type": "web_search"}]))
    same((error.code, error.param), ("reaches_out", "tools[0]"))
    has(error.message, "is a tool that is not run by the client")
    error = raised(anthropic.PermissionDeniedError, messages(tools=[{"type": "web_search_20250305", "name": "web_search"}]))
    has(error.body["error"]["message"], "is a tool that is not run by the client")


@case("remote addresses")
def remote_addresses(used):
    image = [{"type": "image_url", "image_url": {"url": PICTURE}}]
    has(raised(openai.PermissionDeniedError, chat(messages=said(image))).message, "is a remote URL")
    image = [{"type": "input_image", "image_url": PICTURE, "detail": "auto"}]
    has(raised(openai.PermissionDeniedError, responses(input=said(image))).message, "is a remote URL")
    image = [{"type": "image", "source": {"type": "url", "url": PICTURE}}]
    error = raised(anthropic.PermissionDeniedError, messages(messages=said(image)))
    has(error.body["error"]["message"], "is a remote URL")


@case("stored and in the background")
def stored(used):
    for options in [{"previous_response_id": "resp_1"}, {"background": True}, {"store": True}]:
        same(raised(openai.PermissionDeniedError, responses(**options)).code, "reaches_out")


@case("bad request")
def bad_request(used):
    error = raised(openai.BadRequestError, chat(max_completion_tokens="many"))
    same((error.status_code, error.param), (400, "max_completion_tokens"))
    error = raised(anthropic.BadRequestError, messages(max_tokens="many", stream=True))
    same(error.body["error"]["type"], "invalid_request_error")


@case("nothing there")
def nothing_there(used):
    raised(openai.NotFoundError, OPENAI.files.list)
    raised(anthropic.NotFoundError, ANTHROPIC.messages.batches.list)


@case("budget exhausted")
def budget_exhausted(used):
    client = by_openai("POOR")
    completion = client.chat.completions.create(model="talk", messages=said("Hi."))
    used.append(chat_usage(completion.usage))
    # Each of these is one call: the libraries do not try again.
    error = raised(openai.RateLimitError, lambda: client.chat.completions.create(model="talk", messages=said("Hi.")))
    same((error.status_code, error.code), (429, "budget_exhausted"))
    has(error.message, "the budget of this run is too small for this call")
    error = raised(openai.RateLimitError, lambda: client.responses.create(model="talk", input="Hi.", stream=True))
    same(error.code, "budget_exhausted")
    client = by_anthropic("POOR")
    error = raised(
        anthropic.RateLimitError, lambda: client.messages.create(model="talk", max_tokens=500, messages=said("Hi."))
    )
    same(error.body["error"]["type"], "rate_limit_error")


@case("output bounded by the budget")
def bounded(used):
    raw = by_openai("THRIFTY").chat.completions.with_raw_response.create(model="talk", messages=said("Hi."))
    same(raw.headers["x-herma-rewrites"], "max_output")
    assert 3000 < int(raw.headers["x-herma-max-output"]) < 4000
    completion = raw.parse()
    same(completion.choices[0].message.content, GREETING)
    used.append(chat_usage(completion.usage))
