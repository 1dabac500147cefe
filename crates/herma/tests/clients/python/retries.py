"""Upstreams that fail for a while. The libraries try again by themselves, twice unless told otherwise."""

import time

import anthropic
import openai
from kit import GREETING, by_anthropic, by_openai, case, chat_usage, messages_usage, raised, responses_usage, said, same

OPENAI = by_openai()
ANTHROPIC = by_anthropic()
OPENAI_ONCE = by_openai(max_retries=0)
ANTHROPIC_ONCE = by_anthropic(max_retries=0)


def chat(client, model, text, used):
    completion = client.chat.completions.create(model=model, messages=said(text))
    used.append(chat_usage(completion.usage))
    return completion.choices[0].message.content


def responses(client, model, text, used):
    response = client.responses.create(model=model, input=text)
    used.append(responses_usage(response.usage))
    return response.output_text


def messages(client, model, text, used):
    message = client.messages.create(model=model, max_tokens=500, messages=said(text))
    used.append(messages_usage(message.usage))
    return message.content[0].text


@case("busy twice, chat")
def busy_chat(used):
    same(chat(OPENAI, "busy", "Chat.", used), "Now I have time.")


@case("busy twice, responses")
def busy_responses(used):
    same(responses(OPENAI, "busy", "Responses.", used), "Now I have time.")


@case("busy twice, messages")
def busy_messages(used):
    same(messages(ANTHROPIC, "busy", "Messages.", used), "Now I have time.")


@case("busy twice, streamed")
def busy_streamed(used):
    with ANTHROPIC.messages.stream(model="busy", max_tokens=500, messages=said("Streamed.")) as stream:
        message = stream.get_final_message()
    same(message.content[0].text, "Now I have time.")
    used.append(messages_usage(message.usage))


@case("busy, and not tried again")
def busy_once(used):
    error = raised(openai.RateLimitError, lambda: chat(OPENAI_ONCE, "busy", "Once.", used))
    same((error.status_code, error.response.headers["retry-after-ms"]), (429, "200"))
    same(error.body["message"], "Too many requests.")
    time.sleep(0.5)
    same(chat(OPENAI, "busy", "Once.", used), "Now I have time.")


@case("overloaded once")
def overloaded(used):
    same(chat(OPENAI, "overloaded", "Chat.", used), "It got better.")
    same(messages(ANTHROPIC, "overloaded", "Messages.", used), "It got better.")


@case("broken once")
def broken(used):
    error = raised(openai.InternalServerError, lambda: chat(OPENAI_ONCE, "broken", "Chat.", used))
    same((error.status_code, error.body["message"]), (500, "It broke."))
    same(chat(OPENAI_ONCE, "broken", "Chat.", used), "It works again.")
    error = raised(anthropic.InternalServerError, lambda: messages(ANTHROPIC_ONCE, "broken", "Messages.", used))
    same(error.body["error"], {"type": "api_error", "message": "It broke."})
    same(messages(ANTHROPIC, "broken", "Messages.", used), "It works again.")
    same(responses(OPENAI, "broken", "Responses.", used), "It works again.")


@case("the next in the chain")
def next_in_the_chain(used):
    raw = OPENAI.chat.completions.with_raw_response.create(model="backed", messages=said("Hi."))
    same(raw.headers["x-herma-upstream"], "talk/talk")
    completion = raw.parse()
    same(completion.choices[0].message.content, GREETING)
    used.append(chat_usage(completion.usage))
