"""Responses."""

import asyncio
import json

from kit import GREETING, by_openai, by_openai_async, case, responses_usage, same

client = by_openai()

WEATHER = {
    "type": "function",
    "name": "weather",
    "description": "The weather in a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    "strict": False,
}
QUESTION = {"role": "user", "content": "Is it warmer in Oslo or in Rome?"}


def calls_of(response):
    calls = [item for item in response.output if item.type == "function_call"]
    same([call.name for call in calls], ["weather", "weather"])
    same([json.loads(call.arguments) for call in calls], [{"city": "Oslo"}, {"city": "Rome"}])
    assert calls[0].call_id != calls[1].call_id
    return calls


def next_turn(response):
    degrees = {"Oslo": "4", "Rome": "21"}
    spoken = []
    for item in response.output:
        if item.type == "message":
            spoken.append({"role": "assistant", "content": item.content[0].text})
        elif item.type == "function_call":
            call = {"call_id": item.call_id, "name": item.name, "arguments": item.arguments}
            spoken.append({"type": "function_call", **call})
    results = [
        {"type": "function_call_output", "call_id": call.call_id, "output": degrees[json.loads(call.arguments)["city"]]}
        for call in calls_of(response)
    ]
    return [QUESTION, *spoken, *results]


@case("responses plain")
def plain(used):
    raw = client.responses.with_raw_response.create(model="talk", input="Hi.")
    same(raw.headers["x-herma-upstream"], "talk/talk")
    response = raw.parse()
    same(response.output_text, GREETING)
    same(response.status, "completed")
    used.append(responses_usage(response.usage))


@case("responses stream")
def stream(used):
    events = list(client.responses.create(model="talk", input="Hi.", stream=True))
    same(events[0].type, "response.created")
    same("".join(event.delta for event in events if event.type == "response.output_text.delta"), GREETING)
    same([event.sequence_number for event in events], list(range(len(events))))
    same(events[-1].type, "response.completed")
    used.append(responses_usage(events[-1].response.usage))


@case("responses stream by the helper")
def stream_helper(used):
    with client.responses.stream(model="talk", input="Hi.") as stream:
        response = stream.get_final_response()
    same(response.output_text, GREETING)
    used.append(responses_usage(response.usage))


@case("responses tools")
def tools(used):
    first = client.responses.create(model="tools", input=[QUESTION], tools=[WEATHER])
    used.append(responses_usage(first.usage))
    second = client.responses.create(model="tools", input=next_turn(first), tools=[WEATHER])
    same(second.output_text, "Rome is warmer than Oslo.")
    used.append(responses_usage(second.usage))


@case("responses tools streamed")
def tools_streamed(used):
    with client.responses.stream(model="tools", input=[QUESTION], tools=[WEATHER]) as stream:
        first = stream.get_final_response()
    used.append(responses_usage(first.usage))
    with client.responses.stream(model="tools", input=next_turn(first), tools=[WEATHER]) as stream:
        second = stream.get_final_response()
    same(second.output_text, "Rome is warmer than Oslo.")
    used.append(responses_usage(second.usage))


@case("responses many at once")
async def many(used):
    async with by_openai_async() as client:
        calls = [client.responses.create(model="talk", input="Hi.") for _ in range(8)]
        for response in await asyncio.gather(*calls):
            same(response.output_text, GREETING)
            used.append(responses_usage(response.usage))
