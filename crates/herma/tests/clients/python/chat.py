"""Chat Completions."""

import asyncio
import json

from kit import GREETING, by_openai, by_openai_async, case, chat_usage, said, same

client = by_openai()

WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
WITH_USAGE = {"include_usage": True}
QUESTION = {"role": "user", "content": "Is it warmer in Oslo or in Rome?"}
PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def city_of(call):
    return json.loads(call.function.arguments)["city"]


def next_turn(completion):
    message, calls = completion.choices[0].message, completion.choices[0].message.tool_calls
    same(completion.choices[0].finish_reason, "tool_calls")
    same([call.function.name for call in calls], ["weather", "weather"])
    same([city_of(call) for call in calls], ["Oslo", "Rome"])
    assert calls[0].id != calls[1].id
    degrees = {"Oslo": "4", "Rome": "21"}
    results = [{"role": "tool", "tool_call_id": call.id, "content": degrees[city_of(call)]} for call in calls]
    return [QUESTION, message, *results]


@case("chat plain")
def plain(used):
    raw = client.chat.completions.with_raw_response.create(model="talk", messages=said("Hi."))
    same(raw.headers["x-herma-upstream"], "talk/talk")
    completion = raw.parse()
    same(completion.model, "talk")
    same(completion.choices[0].message.content, GREETING)
    same(completion.choices[0].finish_reason, "stop")
    used.append(chat_usage(completion.usage))


@case("chat by an alias")
def alias(used):
    completion = client.chat.completions.create(model="small-talk", messages=said("Hi."))
    same(completion.choices[0].message.content, GREETING)
    used.append(chat_usage(completion.usage))


@case("chat with an image inside")
def image(used):
    parts = [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": PIXEL}}]
    completion = client.chat.completions.create(model="talk", messages=said(parts))
    same(completion.choices[0].message.content, GREETING)
    used.append(chat_usage(completion.usage))


@case("chat stream")
def stream(used):
    chunks = list(client.chat.completions.create(model="talk", messages=said("Hi."), stream=True))
    same("".join(chunk.choices[0].delta.content or "" for chunk in chunks), GREETING)
    same(chunks[-1].choices[0].finish_reason, "stop")
    # It did not ask for the usage, and sees none.
    assert all(chunk.usage is None for chunk in chunks)
    used.append(None)


@case("chat stream with usage")
def stream_with_usage(used):
    chunks = list(
        client.chat.completions.create(
            model="talk", messages=said("Hi."), stream=True, stream_options=WITH_USAGE
        )
    )
    same("".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices), GREETING)
    same(chunks[-1].choices, [])
    used.append(chat_usage(chunks[-1].usage))


@case("chat stream by the helper")
def stream_helper(used):
    with client.chat.completions.stream(model="talk", messages=said("Hi."), stream_options=WITH_USAGE) as stream:
        completion = stream.get_final_completion()
    same(completion.choices[0].message.content, GREETING)
    used.append(chat_usage(completion.usage))


@case("chat tools")
def tools(used):
    options = {"model": "tools", "tools": [WEATHER]}
    first = client.chat.completions.create(messages=[QUESTION], **options)
    used.append(chat_usage(first.usage))
    second = client.chat.completions.create(messages=next_turn(first), **options)
    same(second.choices[0].message.content, "Rome is warmer than Oslo.")
    used.append(chat_usage(second.usage))


@case("chat tools streamed")
def tools_streamed(used):
    options = {"model": "tools", "tools": [WEATHER], "stream_options": WITH_USAGE}
    with client.chat.completions.stream(messages=[QUESTION], **options) as stream:
        first = stream.get_final_completion()
    used.append(chat_usage(first.usage))
    with client.chat.completions.stream(messages=next_turn(first), **options) as stream:
        second = stream.get_final_completion()
    same(second.choices[0].message.content, "Rome is warmer than Oslo.")
    used.append(chat_usage(second.usage))


@case("chat many at once")
async def many(used):
    async with by_openai_async() as client:
        calls = [client.chat.completions.create(model="talk", messages=said("Hi.")) for _ in range(8)]
        for completion in await asyncio.gather(*calls):
            same(completion.choices[0].message.content, GREETING)
            used.append(chat_usage(completion.usage))


@case("chat streams at once")
async def many_streams(used):
    async def ask(client):
        stream = await client.chat.completions.create(
            model="talk", messages=said("Hi."), stream=True, stream_options=WITH_USAGE
        )
        chunks = [chunk async for chunk in stream]
        same("".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices), GREETING)
        return chat_usage(chunks[-1].usage)

    async with by_openai_async() as client:
        used.extend(await asyncio.gather(*(ask(client) for _ in range(8))))
