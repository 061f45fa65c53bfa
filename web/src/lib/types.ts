// The API's words. They come from its document, by `npm run types`; here they only get shorter names.
import type { components } from "./api.d";

type Schemas = components["schemas"];

export type Session = Schemas["Session"];
export type Port = Schemas["Port"];
export type Process = Schemas["Process"];
export type OpenFile = Schemas["OpenFile"];
export type Screen = Schemas["Screen"];
export type Recording = Schemas["Recording"];
export type Mark = Schemas["Mark"];
export type Away = Schemas["Away"];
export type Ask = Schemas["Ask"];
export type Me = Schemas["Me"];
export type Operator = Schemas["Enrolled"];
export type Grant = Schemas["Grant"];
export type Link = Schemas["Link"];
export type Touched = Schemas["Touched"];
export type Verified = Schemas["Verdict"];
export type Project = Schemas["Project"];
export type ProjectState = Schemas["ProjectState"];
export type TaskLine = Schemas["Task"];
export type Task = Schemas["TaskWhole"];
export type Contract = Schemas["Contract"];
export type History = Schemas["History"];
export type LogEntry = Schemas["Entry"];
export type Artifact = Schemas["Artifact"];
export type Checkpoint = Schemas["Checkpoint"];
export type Brief = Schemas["Brief"];
export type Controls = Schemas["SaysControls"];

export type LiveMessage = Schemas["SaysSessions"] | Schemas["SaysGone"] | Schemas["SaysInbox"] | Schemas["SaysRefused"] | Schemas["SaysPing"] | Schemas["SaysPong"];
export type AttachMessage =
  | Schemas["SaysAttached"] | Schemas["SaysRestore"] | Schemas["SaysControls"] | Schemas["SaysSize"] | Schemas["SaysGap"] | Schemas["SaysExit"] | Schemas["SaysTaken"]
  | Schemas["SaysHanded"] | Schemas["SaysTyped"] | Schemas["SaysRefused"] | Schemas["SaysPing"] | Schemas["SaysPong"]; // prettier-ignore

// What the document leaves open, because what is in it depends on what happened.

export interface Entry {
  n: number;
  at: string;
  kind: string;
  name: string | null;
  operator_kind: string | null;
  why: string | null;
  offset: number | null;
  text?: string;
  [fact: string]: unknown;
}
export interface TimelinePage {
  entries: Entry[];
  next: number | null;
}
export interface Verification {
  results?: { command: string | string[]; state: string; exit_code?: number | null; tail?: string; session?: string | null }[];
}
export type Check = { command: string | string[] } | { profile: string };
export interface Doubt {
  key: string;
  run: string;
  effect?: string;
  action?: string | null;
  args?: unknown;
  error?: string | null;
  begun_at?: string | null;
}
export type Run = Omit<Schemas["Run"], "in_doubt"> & { in_doubt: Omit<Doubt, "run">[] };
export type Difference = Schemas["Difference"] & { removed?: unknown[]; added?: unknown[]; entries?: Difference[] };
export type CheckpointDiff = Omit<Schemas["Compared"], "changes"> & { changes: Difference[] };
export interface ReportedTask {
  task_id: string;
  key: string;
  project: string;
  title: string;
  status: string;
  events: { at: string; by: string; event: string }[];
  attempts: { n: number; outcome: string | null; failure_detail: string | null; begun_at: string; ended_at: string | null }[];
}
export interface Report {
  until: string;
  totals: { tasks: number; events: Record<string, number>; attempts: Record<string, number>; verifications: { passed: number; failed: number } };
  people: { name: string; events: number }[];
  tasks: ReportedTask[];
}
