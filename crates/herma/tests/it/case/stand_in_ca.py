#!/usr/bin/python3
"""A stand-in for WorkOS Case, which is on no registry. It has the commands, the files, the lines and the exit codes that a
build of its public source was seen to have, and the five agents of its pipeline, each of which asks a model and does what the
model calls for. It believes whatever an agent says of itself."""

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


def model(base, name, tools, items):
    headers = {"content-type": "application/json", "authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
    body = json.dumps({"model": name, "input": items, "tools": tools}).encode()
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


def agent(base, name, tools, prompt):
    """The text of one agent. Whatever its model's server says is hidden behind an empty one."""
    items, text = [{"role": "user", "content": prompt}], ""
    try:
        while True:
            output = model(base, name, tools, items)
            items += output
            calls = [item for item in output if item["type"] == "function_call"]
            for item in output:
                if item["type"] == "message":
                    text += "".join(part.get("text", "") for part in item["content"])
            if not calls:
                return text
            for one in calls:
                tell("  ... still running (0s)")
                done = call(one["name"], json.loads(one["arguments"]))
                items.append({"type": "function_call_output", "call_id": one["call_id"], "output": done})
    except Exception:
        return ""


def result(text):
    """What an agent says of itself, which is believed."""
    inside = text.rpartition("<<<AGENT_RESULT")
    envelope, end, _ = inside[2].partition("AGENT_RESULT>>>")
    if not inside[1] or not end:
        return {"status": "failed", "error": "AGENT_RESULT start delimiter not found"}
    try:
        return json.loads(envelope)
    except ValueError:
        return {"status": "failed", "error": "AGENT_RESULT JSON parse error"}


def tell(line):
    """A line of the pipeline. The texts of its agents are not printed."""
    print("[unattended] " + line, flush=True)


def known(models, chosen):
    """The address of the provider, if its catalogue or models.json knows the model."""
    provider = models["providers"][chosen["provider"]]
    own = provider.get("models", [])
    if own and not (provider.get("apiKey") and provider.get("api")):
        own = []
    if chosen["model"] not in CATALOGUE + [entry["id"] for entry in own]:
        print(f"Fatal: Model not found: {chosen['provider']}/{chosen['model']}.", file=sys.stderr, flush=True)
        sys.exit(1)
    return provider["baseUrl"]


def pipeline(base, name, prompt):
    """Who failed, or None. The retrospective comes last, whatever came before."""
    failed = None
    for phase, role in PHASES:
        if failed and phase != "retrospective":
            continue
        tell(f"[{phase}] starting {role}...")
        tools = TOOLS if role in ("implementer", "retrospective") else [tool for tool in TOOLS if tool["name"] != "write"]
        said = result(agent(base, name, tools, f"You are the {role}.\n{prompt}"))
        if said["status"] != "completed" and role == "implementer":
            said = result(agent(base, name, tools, f"## RETRY CONTEXT\nYou are the {role}.\n{prompt}"))
        critical = said.get("findings")
        if phase != "retrospective" and said["status"] != "completed":
            tell("Auto-selecting: Abort")
            failed = role
        elif role == "reviewer" and isinstance(critical, dict) and critical.get("critical", 0) > 0:
            # It is said to be done, the closer still comes, and the pipeline has failed.
            tell("Auto-selecting: Abort")
            rejected.append(role)
        tell(f"[{phase}] {role} {'FAILED' if failed == role else 'done'} (0s)")
    return failed or (rejected[0] if rejected else None)


PHASES = [("implement", "implementer"), ("verify", "verifier"), ("review", "reviewer"), ("close", "closer"),
          ("retrospective", "retrospective")]
# Models that it knows without being told.
CATALOGUE = ["gpt-5"]
rejected = []


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
    base = known(read(models + "/models.json"), chosen)
    # The text of the task is not in the prompt, only where it lies.
    brief = sys.argv[3].replace(".task.json", ".md")
    assert os.path.exists(brief)
    failed = pipeline(base, chosen["model"], f"- **Task file**: `{brief}`\n- **Target repo**: `{repo['path']}`\n")
    events = f".case/{task['id']}/events"
    os.makedirs(events, exist_ok=True)
    with open(events + "/run-1.jsonl", "w") as file:
        end = {"event": "pipeline_end", "outcome": "failed" if failed else "completed"}
        if failed:
            end["failedAgent"] = failed
        file.write(json.dumps({"event": "pipeline_start"}) + "\n" + json.dumps(end) + "\n")
    tell(f"Pipeline failed at {failed} phase." if failed else "Pipeline completed successfully.")


main()
