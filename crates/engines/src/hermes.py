"""Starts Hermes Agent without a terminal: one conversation by its Python interface, told as one JSON object a line.

Its own headless mode wants the prompt as an argument, and says nothing before its last word. Here the prompt comes by
standard input, and each call of a tool is told when it begins.

Before each call of a tool herma is asked whether it may be made. Whatever is not a clear yes is a no.

What was said is kept in a database of its own, and an earlier conversation is gone on with as `hermes --resume` does.

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


def what_was_said(kept, session):
    """The session that holds the conversation by now, and what was said in it."""
    if kept.get_session(session) is None:
        raise LookupError(f"the session {session} is not there")
    # A conversation that became too long goes on in another one.
    session = kept.resolve_resume_session_id(session) or session
    said = kept.get_messages_as_conversation(session, repair_alternation=True)
    kept.reopen_session(session)
    return session, [message for message in said if message.get("role") != "session_meta"]


def converse(prompt, session=None):
    home = pathlib.Path(os.environ["HERMES_HOME"])
    model = json.loads((home / "config.yaml").read_text(encoding="utf-8"))["model"]
    from hermes_state import SessionDB
    from run_agent import AIAgent

    sessions = home / "conversations"
    sessions.mkdir(exist_ok=True)
    kept, said = SessionDB(sessions / "state.db"), None
    if session is not None:
        session, said = what_was_said(kept, session)

    ask_before_each_call()
    agent = AIAgent(
        session_id=session,
        session_db=kept,
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
    return agent.run_conversation(prompt, conversation_history=said)


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
