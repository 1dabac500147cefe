"""What the cases share: the clients, and how a case reports what its library told it."""

import asyncio
import inspect
import json
import os
import traceback

import anthropic
import openai

URL = os.environ["ROUTER"]
CASES = []

GREETING = "Hello there, it is good to hear from you today."
THOUGHT = "They greet me, so I greet back."


def case(name):
    """A case of the table in `cases.rs`. It gets a list, to which it adds the usage of each answer, in order."""

    def add(function):
        CASES.append((name, function))
        return function

    return add


def run():
    """Runs every case, and prints a line of JSON for each."""
    for name, function in CASES:
        used, failed = [], None
        try:
            ended = function(used)
            if inspect.isawaitable(ended):
                asyncio.run(ended)
        except Exception:
            failed = traceback.format_exc()
        print(json.dumps({"case": name, "used": used, "failed": failed}), flush=True)


def by_openai(client="MAIN", **options):
    return openai.OpenAI(**_openai(client), **options)


def by_openai_async(client="MAIN"):
    return openai.AsyncOpenAI(**_openai(client))


def by_anthropic(client="MAIN", **options):
    return anthropic.Anthropic(**_anthropic(client), **options)


def by_anthropic_async(client="MAIN"):
    return anthropic.AsyncAnthropic(**_anthropic(client))


def _openai(client):
    return {"base_url": f"{URL}/v1", "api_key": os.environ[f"{client}_TOKEN"]}


def _anthropic(client):
    return {"base_url": URL, "api_key": os.environ[f"{client}_TOKEN"]}


def said(text):
    """A conversation that consists of this."""
    return [{"role": "user", "content": text}]


def chat_usage(usage):
    return {
        "input": usage.prompt_tokens,
        "output": usage.completion_tokens,
        "cached_input": usage.prompt_tokens_details.cached_tokens,
        "reasoning": usage.completion_tokens_details.reasoning_tokens,
    }


def responses_usage(usage):
    return {
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "cached_input": usage.input_tokens_details.cached_tokens,
        "reasoning": usage.output_tokens_details.reasoning_tokens,
    }


def messages_usage(usage):
    cached, written = usage.cache_read_input_tokens or 0, usage.cache_creation_input_tokens or 0
    return {
        "input": usage.input_tokens + cached + written,
        "output": usage.output_tokens,
        "cached_input": cached,
        "cache_write": written,
    }


def same(found, wanted):
    assert found == wanted, f"found {found!r}, wanted {wanted!r}"


def has(text, part):
    assert part in text, f"{part!r} is not in {text!r}"


def raised(kind, call):
    """The error that a call ends with, which is of exactly this kind."""
    try:
        given = call()
    except Exception as error:
        assert type(error) is kind, f"{type(error).__name__} instead of {kind.__name__}: {error}"
        return error
    raise AssertionError(f"{kind.__name__} was not raised, but given was {given!r}")
