// Log entries of a processor, as they come in events.
import type { Schemas } from "../api/client";
import { oneOf, type ZoneSearch, zoneOf } from "../search";

export type LogEntry = Schemas["ProcessorLogEntry"];

export const LEVELS = ["trace", "debug", "info", "warn", "error"] as const;
export type Level = (typeof LEVELS)[number];

export interface LogsSearch extends ZoneSearch {
  /** The least level that is shown; all if absent. */
  level?: Level;
}

export function logsSearch(raw: Record<string, unknown>): LogsSearch {
  return { ...zoneOf(raw), level: oneOf(raw, "level", LEVELS) };
}

export function isShown(entry: LogEntry, least: Level | undefined): boolean {
  return least === undefined || LEVELS.indexOf(entry.level) >= LEVELS.indexOf(least);
}
