// Made by `rewind init`; `rewind deinit opencode` removes it. Tells rewind what a call is about to change, and changes nothing.
import { spawnSync } from "node:child_process";

const program = {program};

export const Rewind = async ({ directory }: any) => {
  const inputs = new Map<string, object>();
  const tell = (event: string, session: string, more: object) => {
    try {
      const payload = { hook_event_name: event, session_id: session, cwd: directory, ...more };
      spawnSync(program, ["hook", "opencode"], { input: JSON.stringify(payload), timeout: 10000, stdio: ["pipe", "ignore", "ignore"] });
    } catch {
      // A capture that fails is no concern of the session.
    }
  };
  return {
    "chat.message": async (input: any, output: any) => {
      const parts = (output?.parts ?? []).filter((p: any) => p.type === "text" && !p.synthetic);
      tell("UserPromptSubmit", input.sessionID, { prompt: parts.map((p: any) => p.text).join("\n") });
    },
    "tool.execute.before": async (input: any, output: any) => {
      inputs.set(input.callID, output.args);
      tell("PreToolUse", input.sessionID, { tool_name: input.tool, tool_input: output.args, tool_use_id: input.callID });
    },
    "tool.execute.after": async (input: any) => {
      const args = input.args ?? inputs.get(input.callID) ?? {};
      inputs.delete(input.callID);
      tell("PostToolUse", input.sessionID, { tool_name: input.tool, tool_input: args, tool_use_id: input.callID });
    },
  };
};
