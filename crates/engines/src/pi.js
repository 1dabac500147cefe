// Of herma: asks before each call of a tool whether it may be made. Whatever is not a clear yes is a no.
import { spawnSync } from "node:child_process";

export default function (pi) {
  pi.on("tool_call", (event) => {
    const input = JSON.stringify({ toolName: event.toolName, input: event.input });
    const asked = spawnSync(HERMA, ["hook", SOCKET], { input, encoding: "utf8", timeout: 30000 });
    if (asked.status === 0) return undefined;
    return { block: true, reason: asked.stderr?.trim() || "herma could not be asked, and so it is denied" };
  });
}
