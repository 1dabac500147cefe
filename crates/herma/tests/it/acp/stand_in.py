#!/usr/bin/python3
"""A stand-in for an agent that speaks the Agent Client Protocol. It asks a model and does what the model calls for, as a
real one does, and says beside it what an agent can say at a wrong time or in a wrong way."""

import json
import os
import subprocess
import sys
import threading
import urllib.request

TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {
        "type": "object", "properties": {key: {"type": "string"} for key in keys}, "required": keys}}}
    for name, keys in [("bash", ["command"]), ("write", ["path", "content"]), ("read", ["path"])]
]
answers, told, turn = {}, threading.Condition(), {}
# Where it keeps what was said, and whether it offers to go on with it.
KEPT, LOADS = os.environ.get("HOME", "") + "/kept/stand-in.json", os.environ.get("LOADS") == "yes"
said_before = []


def say(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def update(**what):
    say({"method": "session/update", "params": {"sessionId": "stand-in", "update": what}})


def ask(name, method, params):
    say({"id": name, "method": method, "params": params})
    with told:
        told.wait_for(lambda: name in answers)
    return answers[name]


def model(messages):
    body = {"model": os.environ["MODEL"], "messages": messages, "tools": TOOLS}
    headers = {"content-type": "application/json", "authorization": "Bearer " + os.environ["STAND_IN_KEY"]}
    request = urllib.request.Request(os.environ["BASE"] + "/v1/chat/completions", json.dumps(body).encode(), headers)
    return json.load(urllib.request.urlopen(request))["choices"][0]["message"]


def call(tool, arguments, name):
    if tool == "write":
        update(sessionUpdate="tool_call", toolCallId=name, kind="edit", title="Write", status="in_progress",
               rawInput={"path": arguments["path"]})
        with open(arguments["path"], "w") as file:
            file.write(arguments["content"])
        return "written"
    if tool == "read":
        return open(arguments["path"]).read()
    update(sessionUpdate="tool_call", toolCallId=name, kind="execute", title="Terminal", status="pending", rawInput={})
    options = [{"optionId": kind, "name": kind, "kind": kind} for kind in ["allow_always", "allow_once", "reject_once"]]
    answer = ask("ask-" + name, "session/request_permission", {
        "sessionId": "stand-in", "options": options,
        "toolCall": {"toolCallId": name, "kind": "execute", "rawInput": {"command": arguments["command"]}}})
    if answer["result"]["outcome"] != {"outcome": "selected", "optionId": "allow_once"}:
        return "denied"
    done = subprocess.run(arguments["command"], shell=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    return done.stdout.decode(errors="replace")


def work(name, text):
    # herma offers no files of its own, and says so.
    assert ask("file", "fs/read_text_file", {"path": "/etc/passwd"})["error"]["code"] == -32601
    update(sessionUpdate="plan", entries=[{"content": "fix it", "priority": "high", "status": "pending"}])
    messages = [*said_before, {"role": "user", "content": text}]
    while True:
        try:
            answer = model(messages)
        except Exception as error:
            say({"id": name, "error": {"code": -32603, "message": "the model does not answer", "data": str(error)}})
            return
        messages.append(answer)
        for word in (answer.get("content") or "").split(" "):
            update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": word + " "})
        if not answer.get("tool_calls"):
            break
        for one in answer["tool_calls"]:
            result = call(one["function"]["name"], json.loads(one["function"]["arguments"]), one["id"])
            messages.append({"role": "tool", "tool_call_id": one["id"], "content": result})
    os.makedirs(os.path.dirname(KEPT), exist_ok=True)
    with open(KEPT, "w") as file:
        json.dump(messages, file)
    say({"id": name, "result": {"stopReason": "end_turn", "usage": {"inputTokens": 7, "outputTokens": 5}}})
    # Once more, which says nothing more.
    say({"id": name, "result": {"stopReason": "end_turn"}})


def hear(message):
    name, method = message.get("id"), message.get("method")
    if method is None:
        with told:
            answers[name] = message
            told.notify_all()
    elif method == "initialize":
        say({"id": name, "result": {"protocolVersion": 1, "agentInfo": {"name": "stand-in", "version": "1"},
                                    "agentCapabilities": {"loadSession": LOADS}}})
    elif method == "session/new":
        assert message["params"]["cwd"] == os.getcwd()
        say({"id": name, "result": {"sessionId": "stand-in"}})
    elif method == "session/load":
        assert LOADS and message["params"]["sessionId"] == "stand-in"
        said_before.extend(json.load(open(KEPT)))
        update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": "Said before."})
        say({"id": name, "result": None})
    elif method == "session/prompt":
        turn["id"] = name
        text = message["params"]["prompt"][0]["text"]
        threading.Thread(target=work, args=(name, text), daemon=True).start()
    elif method == "session/cancel":
        say({"id": turn["id"], "result": {"stopReason": "cancelled"}})
        os._exit(0)


if sys.argv[1:] == ["--version"]:
    print("stand-in 1")
    sys.exit()
assert sys.argv[1:] == ["speak", os.environ["MODEL"]]
assert open(os.environ["HOME"] + "/stand-in/config").read() == os.environ["MODEL"] + "\n"
sys.stdout.buffer.write(b"\x1b[32mwelcome\x1b[0m \xff\xfe\x00\n[]\n{\"jsonrpc\":\"1.0\"}\n\n")
sys.stdout.flush()
for line in sys.stdin:
    hear(json.loads(line))
# At once: Python aborts where it ends while another thread still speaks.
os._exit(0)
