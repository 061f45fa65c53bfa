"""Events as Claude Code gives them to its hooks: the shapes that were recorded of 2.1.197 and 2.1.326."""

from __future__ import annotations

import json
from typing import Any

CONVERSATION = "0b1c77d2-5a7e-4f0e-9b53-2f6a0f3f0c11"
COMMAND = {"command": "touch ran", "description": "Make a file"}
_COMMON = {
    "session_id": CONVERSATION,
    "transcript_path": "/nowhere.jsonl",
    "cwd": "/srv/app",
    "prompt_id": "e515eb8d-430c-4ab7-b8b7-d05334200be2",
    "permission_mode": "default",
    "effort": {"level": "high"},
}
_SUGGESTED = {
    "type": "addRules",
    "rules": [{"toolName": "Bash", "ruleContent": "touch ran"}],
    "behavior": "allow",
    "destination": "localSettings",
}
_RESPONSE = {"stdout": "", "stderr": "", "interrupted": False, "isImage": False, "noOutputExpected": True}
_SHAPES: dict[str, dict[str, Any]] = {
    "PermissionRequest": {"tool_name": "Bash", "tool_input": COMMAND, "permission_suggestions": [_SUGGESTED]},
    "PostToolUse": {
        "tool_name": "Bash",
        "tool_input": COMMAND,
        "tool_response": _RESPONSE,
        "tool_use_id": "toolu_035a40b8e7a037890",
        "duration_ms": 271,
    },
    "PostToolUseFailure": {
        "tool_name": "Bash",
        "tool_input": COMMAND,
        "error": "Exit code 3",
        "is_interrupt": False,
        "tool_use_id": "toolu_0f30ccd2655e24d00",
        "duration_ms": 768,
    },
    "UserPromptSubmit": {"prompt": "go on"},
    "Stop": {"stop_hook_active": False, "last_assistant_message": "done", "background_tasks": [], "session_crons": []},
    "SessionEnd": {"reason": "other"},
    "Notification": {"message": "Claude needs your permission", "notification_type": "permission_prompt"},
}


def event(name: str, **fields: Any) -> bytes:
    """One event on stdin; `fields` replace what was recorded."""
    return json.dumps({**_COMMON, "hook_event_name": name, **_SHAPES[name], **fields}).encode()
