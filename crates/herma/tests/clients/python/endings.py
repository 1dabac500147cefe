"""Calls that do not end well: too slow, left, cut, and an error in the middle."""

import itertools

import anthropic
import openai
from kit import by_anthropic, by_openai, case, has, raised, said, same

# Nothing is tried again here, but where a case says so.
OPENAI = by_openai(max_retries=0)
ANTHROPIC = by_anthropic(max_retries=0)
SHORT = 0.4


def chat(client, model, **options):
    return lambda: client.chat.completions.create(model=model, messages=said("Hi."), **options)


def responses(client, model, **options):
    return lambda: client.responses.create(model=model, input="Hi.", **options)


def messages(client, model, **options):
    return lambda: client.messages.create(model=model, max_tokens=500, messages=said("Hi."), **options)


@case("too slow")
def too_slow(used):
    raised(openai.APITimeoutError, chat(OPENAI, "slow", timeout=SHORT))
    raised(openai.APITimeoutError, responses(OPENAI, "slow", timeout=SHORT, stream=True))
    raised(anthropic.APITimeoutError, messages(ANTHROPIC, "slow", timeout=SHORT))


@case("too slow, tried again")
def too_slow_again(used):
    raised(openai.APITimeoutError, chat(by_openai(max_retries=1), "slow", timeout=SHORT))
    raised(anthropic.APITimeoutError, messages(by_anthropic(max_retries=1), "slow", timeout=SHORT))


@case("left in the middle")
def left(used):
    for ask, client in [(chat, OPENAI), (responses, OPENAI), (messages, ANTHROPIC)]:
        stream = ask(client, "endless", stream=True)()
        same(len(list(itertools.islice(stream, 5))), 5)
        stream.close()


@case("cut streams")
def cut_streams(used):
    error = raised(openai.APIError, lambda: list(chat(OPENAI, "cut", stream=True)()))
    same(error.code, "upstream_cut")
    has(error.message, "the connection to the upstream broke off in the middle of the answer")

    # Responses has an event for errors, which the library gives to its caller.
    events = list(responses(OPENAI, "cut", stream=True)())
    same((events[-1].type, events[-1].code), ("error", "upstream_cut"))
    same(events[-1].sequence_number, len(events) - 1)

    error = raised(anthropic.APIStatusError, lambda: list(messages(ANTHROPIC, "cut", stream=True)()))
    same(error.body["error"]["type"], "api_error")
    has(error.body["error"]["message"], "the connection to the upstream broke off in the middle of the answer")


@case("cut answers")
def cut_answers(used):
    raised(openai.APIConnectionError, chat(OPENAI, "cut"))
    raised(openai.APIConnectionError, responses(OPENAI, "cut"))
    raised(anthropic.APIConnectionError, messages(ANTHROPIC, "cut"))


@case("errors in the middle")
def late_errors(used):
    error = raised(openai.APIError, lambda: list(chat(OPENAI, "late", stream=True)()))
    same(error.message, "Overloaded in the middle.")
    failed = list(responses(OPENAI, "late", stream=True)())[-1]
    same((failed.type, failed.response.error.message), ("response.failed", "Overloaded in the middle."))
    error = raised(anthropic.APIStatusError, lambda: list(messages(ANTHROPIC, "late", stream=True)()))
    same(error.body["error"], {"type": "overloaded_error", "message": "Overloaded in the middle."})
