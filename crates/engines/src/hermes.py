"""Starts Hermes Agent without a terminal: one conversation by its Python interface, told as one JSON object a line.

Its own headless mode wants the prompt as an argument, and says nothing before its last word. Here the prompt comes by
standard input, and each call of a tool is told when it begins.

Called as: python3 -I -B hermes.py PACKAGES
"""

import json
import os
import sys
import threading

# Only what is told here goes to the real standard output; what Hermes prints goes to standard error.
TOLD = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="replace")
TELLING = threading.Lock()
os.dup2(2, 1)


def tell(kind, **what):
    line = json.dumps({"type": kind, **what}, default=str)
    with TELLING:
        TOLD.write(line + "\n")
        TOLD.flush()


def converse(prompt):
    with open(os.path.join(os.environ["HERMES_HOME"], "config.yaml"), encoding="utf-8") as file:
        model = json.load(file)["model"]
    from run_agent import AIAgent

    agent = AIAgent(
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
        tool_start_callback=lambda _call, name, arguments: tell("tool", name=name, arguments=arguments),
        interim_assistant_callback=lambda text, **_: tell("message", text=str(text)),
        clarify_callback=lambda *_, **__: "Nobody can answer.",
    )
    tell("session", id=agent.session_id)
    return agent.run_conversation(prompt)


def main():
    # The interpreter has its library by now; what Hermes starts is to find that of the machine.
    os.environ.pop("LD_LIBRARY_PATH", None)
    sys.path.insert(0, sys.argv[1])
    try:
        ended = converse(sys.stdin.read())
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
