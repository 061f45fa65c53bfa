// temporary
export interface Operator { id: string; name: string; kind: string; revoked_at?: string | null; enrolled_at?: string; grants?: Grant[] }
export interface Grant { id: string; verbs: string[]; sessions: string[]; until: string | null; state?: string }
export interface Me { operator: Operator; host: { id: string; name: string; version: string }; grants: Grant[] }
export interface Session {
  id: string; name: string; kind: string; generation: number; state: string; attached_count: number;
  activity: { kind: string; confidence: string; evidence: string; prompt: string | null };
  command: string[]; cwd: string; pid: number | null; created_at: string; started_at?: string;
  exit: null | { code: number | null; signal: string | null; known: boolean; at: string; by: string | null };
  output: { start: number; end: number; durable: number };
  ports: Port[];
  pty: null | { cols: number; rows: number };
  controls: { holder: string | null; kind: string | null; name?: string | null; epoch: number; since: string | null };
  attached: { operator: string; name: string; via: string; mode: string }[];
  observed_at: string; last_line?: string | null;
  processes?: { pid: number; ppid: number; name: string; command: string; state: string; cpu_s: number; rss: number }[];
  connections?: { local: string; remote: string; state: string; pid: number }[];
  files?: { pid: number; fd: number; path: string; kind: string; offset: number | null; lock: string | null }[];
}
export interface Ask {
  id: string; kind: string; state: string; session: string | null; session_name: string | null;
  asker: { operator: string; kind: string; name: string } | null; text: string; options: string[];
  detail: Record<string, unknown>; created_at: string; expires_at: string | null; offset: number | null;
  answer: string | null; answered_by: unknown; answered_at: string | null;
}
export type LiveMessage = { kind: "sessions"; sessions: Session[] } | { kind: "gone"; id: string } | { kind: "inbox"; items: Ask[] } | { kind: "ping" } | { kind: "pong" };
export interface Port { port: number; address: string; protocol: string; pid: number }
export interface Screen { text: string; cols: number; rows: number; offset: number }
interface Who { operator: string; kind: string; name: string }
export interface Controls { kind: "controls"; holder: string | null; holder_kind: string | null; name: string | null; epoch: number; since: string | null; mine: boolean }
export type AttachMessage =
  | { kind: "attached"; session: string; name: string; session_kind: string; me: Who | null; offset: number; cols: number; rows: number }
  | { kind: "restore"; offset: number; cols: number; rows: number; reset: boolean }
  | Controls
  | { kind: "size"; cols: number; rows: number }
  | { kind: "gap"; from: number; to: number }
  | { kind: "exit"; exit: Session["exit"] }
  | { kind: "taken"; by: Who; note: string | null }
  | { kind: "handed"; by: Who; note: string | null }
  | { kind: "typed"; seq: number }
  | { kind: "refused"; seq?: number; error: { code: string; message: string; hint: string } }
  | { kind: "ping" }
  | { kind: "pong" };
export interface Entry { n: number; at: string; kind: string; name: string | null; operator_kind: string | null; why: string | null; offset: number | null; text?: string; [key: string]: unknown }
export type Process = NonNullable<Session["processes"]>[number];
export type OpenFile = NonNullable<Session["files"]>[number];
export interface TimelinePage { entries: Entry[]; next: number | null }
export interface Away { since: string | null; items: { kind: string; id: string; session?: string; name: string; lines: string[]; state: string; offset?: number | null }[] }
export interface Mark { at: string; kind: string; text: string; offset?: number | null; by?: string | null; exit_code?: number | null }
export interface Recording { start: number; end: number; next: number | null; events: { at: number; kind: string; offset: number; data?: string | null; cols?: number | null; rows?: number | null; to?: number | null }[] }
export interface Project { project_name: string; phases: string[]; active_phase: string | null; tasks: number; unfinished: number }
export interface ProjectState { project_name: string; active_phase: string | null; phases: string[]; completed_phases: string[]; remaining_phases: string[] }
export interface TaskLine { task_id: string; project: string; title: string; status: string; phase: string; waiting: number; attempt_count: number; worker: string | null; changed_at: string | null }
export interface Classification { failure_type: string; failure_detail: string; suggested_focus: string; convergence: string }
export interface Contract { goal: string; constraints: string[]; acceptance: string[]; artifacts: string[]; scope: string[]; verification: { command?: string | string[]; profile?: string }[] }
export interface Task extends TaskLine {
  run_id: string | null; depends_on: string[]; needed_by: string[]; contract: Contract; contract_version: number; why: string | null; question: string | null; blocked_by: string | null;
  classification: Classification | null; created_at: string; in_doubt: { key: string; run_id: string }[];
  events: { seq: number; at: string; by: string; event: string; why: string | null }[];
  attempts: { n: number; run_id: string | null; worker: string | null; backend: string | null; outcome: string | null; classification: Classification | null; verification: { results?: { command: string | string[]; passed: boolean }[] } | null; begun_at: string; ended_at: string | null }[];
}
export interface Brief { next_action: { why: string; command?: string[] } | null; sections: Record<string, unknown> }
export interface Run { run: string; task: string | null; n: number; state: string; worker: string | null; created_at: string; steps: Record<"done" | "open" | "failed" | "in_doubt", number>; in_doubt: { key: string; effect?: string; action?: string | null }[] }
export interface LogEntry { seq: number; kind: string; at: string; by: string; step: string | null; body: unknown }
export interface Artifact { name: string; sha256: string; size: number; made_by: string; at: string }
export interface Checkpoint { seq: number; at: string; by: string; kind: string; label: string | null }
export interface CheckpointDiff { changes: { key: string; change: string; from?: unknown; to?: unknown; removed?: unknown[]; added?: unknown[] }[] }
export interface Report {
  since: string; until: string; totals: { tasks: number; events: Record<string, number>; attempts: Record<string, number>; verifications: { passed: number; failed: number } };
  people: { name: string; events: number }[];
  tasks: { task_id: string; key: string; project: string; title: string; status: string; events: { at: string; by: string; event: string }[]; attempts: { n: number; outcome: string | null; failure_detail: string | null; begun_at: string; ended_at: string | null }[] }[];
}
export interface Verified { ok: boolean; entries: number; head: string; reason: string | null }
