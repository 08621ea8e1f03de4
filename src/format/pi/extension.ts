// Made by `rewind init`; `rewind deinit pi` removes it. Tells rewind what a call is about to change, and changes nothing.
import { spawnSync } from "node:child_process";

const program = {program};

function tell(ctx: any, event: string, more: object) {
  try {
    const session = ctx.sessionManager;
    const payload = {
      hook_event_name: event,
      session_id: session.getSessionId(),
      transcript_path: session.getSessionFile() ?? null,
      cwd: ctx.cwd,
      ...more,
    };
    spawnSync(program, ["hook", "pi"], { input: JSON.stringify(payload), timeout: 10000, stdio: ["pipe", "ignore", "ignore"] });
  } catch {
    // A capture that fails is no concern of the session.
  }
}

export default function (pi: any) {
  pi.on("before_agent_start", (event: any, ctx: any) => {
    tell(ctx, "UserPromptSubmit", { prompt: event.prompt });
  });
  pi.on("tool_call", (event: any, ctx: any) => {
    tell(ctx, "PreToolUse", { tool_name: event.toolName, tool_input: event.input, tool_use_id: event.toolCallId });
  });
  pi.on("tool_result", (event: any, ctx: any) => {
    if (event.isError) return;
    tell(ctx, "PostToolUse", { tool_name: event.toolName, tool_input: event.input, tool_use_id: event.toolCallId });
  });
}
