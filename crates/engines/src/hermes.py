"""Starts Hermes Agent without a terminal: one conversation by its Python interface, told as one JSON object a line.

Its own headless mode wants the prompt as an argument, and says nothing before its last word. Here the prompt comes by
standard input, and each call of a tool is told when it begins.

Before each call of a tool herma is asked whether it may be made. Whatever is not a clear yes is a no.

What was said is kept when it ends, and an earlier conversation is given to it as its own command line does.

Called as: python3 -I -B hermes.py HERMA SOCKET PACKAGES [SESSION]
"""

import json
import os
import pathlib
import subprocess
import sys
import threading

# Only what is told here goes to the real standard output; what Hermes prints goes to standard error.
TOLD = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="replace")
TELLING = threading.Lock()
# Where herma is, and where it is asked.
HERMA, SOCKET = sys.argv[1:3]
os.dup2(2, 1)
# The most characters of a tool's output that are told.
LONGEST_OUTPUT = 64 << 10


def tell(kind, **what):
    line = json.dumps({"type": kind, **what}, default=str)
    with TELLING:
        TOLD.write(line + "\n")
        TOLD.flush()


def denial(tool, arguments):
    """Why a call may not be made; nothing where it may."""
    try:
        call = json.dumps({"tool": tool, "args": arguments}, default=str)
        asked = subprocess.run(
            [HERMA, "hook", SOCKET], input=call, text=True, capture_output=True, timeout=30, check=False
        )
        return None if asked.returncode == 0 else asked.stderr.strip() or "herma denied this tool call"
    except Exception as error:
        return f"herma denied this tool call: it could not be asked: {error}"


def ask_before_each_call():
    """Hermes looks this up each time that it is about to call a tool."""
    from hermes_cli import plugins

    own = plugins.resolve_pre_tool_block

    def resolve_pre_tool_block(tool_name, args, *more, **named):
        return denial(tool_name, args) or own(tool_name, args, *more, **named)

    plugins.resolve_pre_tool_block = resolve_pre_tool_block


def place_of(session):
    """Where a conversation is kept: as what it said and heard, and not in the store of all that Hermes ever did."""
    return pathlib.Path(os.environ["HERMES_HOME"], "conversations", f"{session}.json")


def keep(session, said):
    place = place_of(session)
    place.parent.mkdir(exist_ok=True)
    place.write_text(json.dumps(said, default=str), encoding="utf-8")


def converse(prompt, session=None):
    with open(os.path.join(os.environ["HERMES_HOME"], "config.yaml"), encoding="utf-8") as file:
        model = json.load(file)["model"]
    said = json.loads(place_of(session).read_text(encoding="utf-8")) if session else None
    from run_agent import AIAgent

    ask_before_each_call()
    agent = AIAgent(
        session_id=session,
        base_url=model["base_url"],
        api_key=os.environ["HERMA_ROUTER_TOKEN"],
        provider=model["provider"],
        api_mode="chat_completions",
        model=model["default"],
        # No other tools: none that delegates, schedules, sends messages, remembers, or looks something up.
        enabled_toolsets=["terminal", "file"],
        # It would wait a second after each call.
        tool_delay=0,
        quiet_mode=True,
        platform="cli",
        skip_memory=True,
        tool_start_callback=lambda call, name, arguments: tell("tool", call=call, name=name, arguments=arguments),
        tool_complete_callback=lambda call, _name, _arguments, output: tell(
            "tool_result", call=call, output=str(output)[:LONGEST_OUTPUT]
        ),
        interim_assistant_callback=lambda text, **_: tell("message", text=str(text)),
        clarify_callback=lambda *_, **__: "Nobody can answer.",
    )
    # It may go on under another name where the conversation becomes too long; this is the one that is told.
    session = agent.session_id
    tell("session", id=session)
    ended = agent.run_conversation(prompt, conversation_history=said)
    if ended.get("messages"):
        keep(session, ended["messages"])
    return ended


def main():
    # The interpreter has its library by now; what Hermes starts is to find that of the machine.
    os.environ.pop("LD_LIBRARY_PATH", None)
    sys.path.insert(0, sys.argv[3])
    try:
        ended = converse(sys.stdin.read(), *sys.argv[4:5])
    except BaseException as error:  # Whatever it is, it is a failure, and it is told.
        ended = {"failed": True, "error": f"{type(error).__name__}: {error}"}
    if ended.get("final_response"):
        tell("message", text=str(ended["final_response"]))
    well = bool(ended.get("completed")) and not any(ended.get(bad) for bad in ("failed", "partial", "interrupted"))
    tell(
        "result",
        completed=well,
        error=ended.get("error") and str(ended["error"]),
        reason=ended.get("turn_exit_reason"),
        input_tokens=ended.get("input_tokens") or 0,
        output_tokens=ended.get("output_tokens") or 0,
    )
    # Threads of Hermes that still wait for something do not keep it.
    os._exit(0 if well else 1)


main()
