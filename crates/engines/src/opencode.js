// Of herma: asks before each call of a tool whether it may be made. Whatever is not a clear yes is a no.
import { spawnSync } from "node:child_process";

export const herma = async () => ({
  "tool.execute.before": async (call, output) => {
    const input = JSON.stringify({ tool: call.tool, args: output.args });
    const asked = spawnSync(HERMA, ["hook", SOCKET], { input, encoding: "utf8", timeout: 30000 });
    if (asked.status !== 0) {
      throw new Error(asked.stderr?.trim() || "herma could not be asked, and so it is denied");
    }
  },
});
