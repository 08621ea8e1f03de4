// Made by `rewind init`; `rewind deinit amp` removes it. Tells rewind what a call is about to change, and changes nothing.
import { spawnSync } from "node:child_process";

const program = {program};

export default function (amp: any) {
  const inputs = new Map<string, object>();
  const tell = (event: string, e: any, more: object) => {
    try {
      const payload = { hook_event_name: event, session_id: e?.thread?.id, cwd: amp?.system?.workspaceRoot ?? process.cwd(), ...more };
      spawnSync(program, ["hook", "amp"], { input: JSON.stringify(payload), timeout: 10000, stdio: ["pipe", "ignore", "ignore"] });
    } catch {
      // A capture that fails is no concern of the thread.
    }
  };
  amp.on("agent.start", async (e: any) => {
    tell("UserPromptSubmit", e, { prompt: String(e?.message ?? "") });
  });
  amp.on("tool.call", async (e: any) => {
    inputs.set(e?.toolUseID, e?.input);
    tell("PreToolUse", e, { tool_name: e?.tool, tool_input: e?.input, tool_use_id: e?.toolUseID });
    return { action: "allow" };
  });
  amp.on("tool.result", async (e: any) => {
    const args = e?.input ?? inputs.get(e?.toolUseID) ?? {};
    inputs.delete(e?.toolUseID);
    tell("PostToolUse", e, { tool_name: e?.tool, tool_input: args, tool_use_id: e?.toolUseID });
  });
}
