#!/usr/bin/python3
"""A stand-in for WorkOS Case, which is on no registry. It has the commands, the files, the words and the exit codes of `ca`,
and one agent, which asks a model and does what the model calls for. It believes whatever that agent says of itself."""

import json
import os
import subprocess
import sys
import urllib.request

HELP = """Usage: ca <command> [options]

Commands:
  run                 Run the pipeline
  mark-manual-tested  Mark a task as tested by hand
  analyze-failure     Say why a pipeline failed
"""
TOOLS = [
    {"type": "function", "name": name, "parameters": {
        "type": "object", "properties": {key: {"type": "string"} for key in keys}, "required": keys}}
    for name, keys in [("bash", ["command"]), ("write", ["path", "content"]), ("read", ["path"])]
]


def read(path):
    with open(path) as file:
        return json.load(file)


def model(base, name, items):
    headers = {"content-type": "application/json", "authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
    body = json.dumps({"model": name, "input": items, "tools": TOOLS}).encode()
    return json.load(urllib.request.urlopen(urllib.request.Request(base + "/responses", body, headers)))["output"]


def call(name, arguments):
    if name == "write":
        with open(arguments["path"], "w") as file:
            file.write(arguments["content"])
        return "written"
    if name == "read":
        return open(arguments["path"]).read()
    done = subprocess.run(arguments["command"], shell=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    return done.stdout.decode(errors="replace")


def implement(base, name, brief):
    """The text of the agent."""
    items, text = [{"role": "user", "content": brief}], ""
    while True:
        output = model(base, name, items)
        items += output
        calls = [item for item in output if item["type"] == "function_call"]
        for item in output:
            if item["type"] == "message":
                text += "".join(part.get("text", "") for part in item["content"])
        if not calls:
            return text
        for one in calls:
            done = call(one["name"], json.loads(one["arguments"]))
            items.append({"type": "function_call_output", "call_id": one["call_id"], "output": done})


def main():
    if sys.argv[1:] == ["--help"]:
        print(HELP)
        return
    assert sys.argv[1:3] == ["run", "--task"] and sys.argv[4:] == ["--mode", "unattended"], sys.argv
    assert subprocess.run(["sh", "-c", "command -v ca"], stdout=subprocess.DEVNULL).returncode == 0, "ca is on PATH"
    data, models = os.environ["CASE_DATA_DIR"], os.environ["PI_CODING_AGENT_DIR"]
    chosen = read(data + "/config.json")["models"]["default"]
    task = read(sys.argv[3])
    repo = next(repo for repo in read(data + "/projects.json")["repos"] if repo["name"] == task["repo"])
    assert repo["path"] == os.getcwd() and task["status"] == "active"
    base = read(models + "/models.json")["providers"][chosen["provider"]]["baseUrl"]
    with open(sys.argv[3].replace(".task.json", ".md")) as file:
        brief = file.read()
    try:
        text = implement(base, chosen["model"], brief)
    except Exception:
        # Whatever the model's server says is hidden behind these words.
        text = "AGENT_RESULT start delimiter not found"
    print(text, flush=True)
    inside = text.rpartition("<<<AGENT_RESULT")[2].partition("AGENT_RESULT>>>")
    failed = None
    if not inside[1] or "<<<AGENT_RESULT" not in text or json.loads(inside[0])["status"] != "completed":
        failed = "implementer"
    elif "critical" in inside[0]:
        failed = "reviewer"
    events = f".case/{task['id']}/events"
    os.makedirs(events, exist_ok=True)
    with open(events + "/run-1.jsonl", "w") as file:
        end = {"type": "pipeline_end", "outcome": "failed" if failed else "completed", "failedAgent": failed}
        file.write(json.dumps({"type": "pipeline_start"}) + "\n" + json.dumps(end) + "\n")
    print(f"Pipeline failed at {failed} phase." if failed else "Pipeline completed successfully.")


main()
