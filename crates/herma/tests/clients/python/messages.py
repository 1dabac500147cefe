"""Messages."""

import asyncio
import os

import anthropic
from kit import GREETING, THOUGHT, URL, by_anthropic, by_anthropic_async, case, messages_usage, said, same

client = by_anthropic()

HI = {"model": "talk", "max_tokens": 500, "messages": said("Hi.")}
WEATHER = {
    "name": "weather",
    "description": "The weather in a city.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
TOOLS = {"model": "tools", "max_tokens": 500, "tools": [WEATHER]}
QUESTION = {"role": "user", "content": "Is it warmer in Oslo or in Rome?"}


def text_of(message):
    return "".join(block.text for block in message.content if block.type == "text")


def next_turn(message):
    calls = [block for block in message.content if block.type == "tool_use"]
    same(message.stop_reason, "tool_use")
    same([call.name for call in calls], ["weather", "weather"])
    same([call.input for call in calls], [{"city": "Oslo"}, {"city": "Rome"}])
    assert calls[0].id != calls[1].id
    degrees = {"Oslo": "4", "Rome": "21"}
    results = [{"type": "tool_result", "tool_use_id": call.id, "content": degrees[call.input["city"]]} for call in calls]
    return [QUESTION, {"role": "assistant", "content": message.content}, {"role": "user", "content": results}]


@case("messages plain")
def plain(used):
    raw = client.messages.with_raw_response.create(**HI)
    same(raw.headers["x-herma-upstream"], "talk/talk")
    message = raw.parse()
    same([block.type for block in message.content], ["thinking", "text"])
    same(message.content[0].thinking, THOUGHT)
    same(text_of(message), GREETING)
    same(message.stop_reason, "end_turn")
    used.append(messages_usage(message.usage))


@case("messages by a bearer token")
def bearer(used):
    client = anthropic.Anthropic(base_url=URL, auth_token=os.environ["MAIN_TOKEN"])
    message = client.messages.create(**HI)
    same(text_of(message), GREETING)
    used.append(messages_usage(message.usage))


@case("messages beta")
def beta(used):
    message = client.beta.messages.create(**HI, betas=["some-beta-2026-01-01"])
    same(text_of(message), GREETING)
    used.append(messages_usage(message.usage))


@case("messages stream")
def stream(used):
    events = list(client.messages.create(**HI, stream=True))
    same(events[0].type, "message_start")
    deltas = [event.delta for event in events if event.type == "content_block_delta"]
    same("".join(delta.text for delta in deltas if delta.type == "text_delta"), GREETING)
    same("".join(delta.thinking for delta in deltas if delta.type == "thinking_delta"), THOUGHT)
    same(events[-1].type, "message_stop")
    usage = messages_usage(events[0].message.usage)
    usage["output"] = next(event for event in events if event.type == "message_delta").usage.output_tokens
    used.append(usage)


@case("messages stream by the helper")
def stream_helper(used):
    with client.messages.stream(**HI) as stream:
        same("".join(stream.text_stream), GREETING)
        message = stream.get_final_message()
    used.append(messages_usage(message.usage))


@case("messages tools")
def tools(used):
    first = client.messages.create(messages=[QUESTION], **TOOLS)
    used.append(messages_usage(first.usage))
    second = client.messages.create(messages=next_turn(first), **TOOLS)
    same(text_of(second), "Rome is warmer than Oslo.")
    used.append(messages_usage(second.usage))


@case("messages tools streamed")
def tools_streamed(used):
    with client.messages.stream(messages=[QUESTION], **TOOLS) as stream:
        first = stream.get_final_message()
    used.append(messages_usage(first.usage))
    with client.messages.stream(messages=next_turn(first), **TOOLS) as stream:
        second = stream.get_final_message()
    same(text_of(second), "Rome is warmer than Oslo.")
    used.append(messages_usage(second.usage))


@case("messages many at once")
async def many(used):
    async with by_anthropic_async() as client:
        calls = [client.messages.create(**HI) for _ in range(8)]
        for message in await asyncio.gather(*calls):
            same(text_of(message), GREETING)
            used.append(messages_usage(message.usage))


@case("messages streams at once")
async def many_streams(used):
    async def ask(client):
        async with client.messages.stream(**HI) as stream:
            message = await stream.get_final_message()
        same(text_of(message), GREETING)
        return messages_usage(message.usage)

    async with by_anthropic_async() as client:
        used.extend(await asyncio.gather(*(ask(client) for _ in range(8))))


@case("count tokens")
def count_tokens(used):
    short = client.messages.count_tokens(model="talk", messages=said("Hi."))
    long = client.messages.count_tokens(model="talk", messages=said("Hi there. " * 100))
    assert 0 < short.input_tokens < long.input_tokens
