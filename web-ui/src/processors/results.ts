// The latest result of each window, gathered from the records of a processor's output topic.
//
// A result's key is the record's; its window stands in headers. The last record of a key and window is its result; values
// stay the text that they are.
import type { RecordRow } from "../api/records";
import { countOf, oneOf, textOf, type ZoneSearch, zoneOf } from "../search";

/** How many windows are kept; past them, the ones that begin earliest make room and are counted. */
export const WINDOWS_MAX = 400_000;
export const ROWS_PER_PAGE = 100;
/** How long changes are gathered before they are shown, and how much longer than showing them took. */
const SHOW_EVERY_MS = 250;
const SHOW_PAUSE_FACTOR = 4;

export const SORTS = ["window", "key", "value", "kind", "updates", "recent"] as const;
export type Sort = (typeof SORTS)[number];

export interface ResultsSearch extends ZoneSearch {
  /** `recent` if absent: what moves is in sight. */
  sort?: Sort;
  descending?: "yes";
  /** From 1. */
  page?: number;
  /** Only keys that have this in them. */
  filter?: string;
  /** The key whose chart is shown, and which of its numbers. */
  chart?: string;
  field?: string;
}

export function resultsSearch(raw: Record<string, unknown>): ResultsSearch {
  return {
    ...zoneOf(raw),
    sort: oneOf(raw, "sort", SORTS),
    descending: raw.descending === "yes" ? "yes" : undefined,
    page: countOf(raw, "page") || undefined,
    filter: textOf(raw, "filter"),
    chart: typeof raw.chart === "string" ? raw.chart : undefined,
    field: textOf(raw, "field"),
  };
}

export interface WindowResult {
  id: string;
  key: string;
  start: number;
  end: number;
  kind: string;
  /** JSON, or text that is none; null for a result that is null. */
  value: string | null;
  /** How many results the window had. */
  updates: number;
  /** Counts results in the order in which they came. */
  arrival: number;
}

export interface ResultsView {
  results: WindowResult[];
  /** Records that are no results of windows. */
  others: number;
  /** Windows that made room for newer ones. */
  droppedWindows: number;
  records: number;
  isCaughtUp: boolean;
  /** Results that came later than this were not there when the page had caught up. */
  caughtUpAt: number;
}

const EMPTY: ResultsView = {
  results: [],
  others: 0,
  droppedWindows: 0,
  records: 0,
  isCaughtUp: false,
  caughtUpAt: Number.POSITIVE_INFINITY,
};

function headerNumber(row: RecordRow, name: string): number | null {
  const value = row.headers.find((header) => header.name === name)?.value ?? "";
  const number = /^-?\d+$/.test(value) ? Number(value) : Number.NaN;
  return Number.isSafeInteger(number) ? number : null;
}

export class Results {
  private windows = new Map<string, WindowResult>();
  private others = 0;
  private dropped = 0;
  private arrivals = 0;
  private records = 0;
  private view = EMPTY;
  private isDirty = false;
  private caughtUpAt = Number.POSITIVE_INFINITY;
  private readonly listeners = new Set<() => void>();
  /** What is still to be read of each partition before the page has caught up. */
  private readonly open: Map<number, number>;
  private readonly schedule: (show: () => void, milliseconds: number) => void;
  private showTook = 0;

  /** `ends` are the ends of the partitions when reading began. */
  constructor(
    ends: { partition: number; start: number; end: number }[],
    schedule: (show: () => void, milliseconds: number) => void = (show, milliseconds) => setTimeout(show, milliseconds),
  ) {
    this.open = new Map(ends.filter(({ start, end }) => end > start).map(({ partition, end }) => [partition, end]));
    this.schedule = schedule;
    if (this.open.size === 0) this.caughtUp();
  }

  take(row: RecordRow): void {
    this.records += 1;
    const start = headerNumber(row, "window.start");
    const end = headerNumber(row, "window.end");
    if (start === null || end === null) this.others += 1;
    else this.put(row, start, end);
    const wanted = this.open.get(row.partition);
    if (wanted !== undefined && row.offset + 1 >= wanted) {
      this.open.delete(row.partition);
      if (this.open.size === 0) this.caughtUp();
    }
    this.changed();
  }

  /** The node says that nothing comes any more, as where the last offsets hold no records. */
  idle(): void {
    if (this.open.size === 0) return;
    this.open.clear();
    this.caughtUp();
    this.changed();
  }

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  snapshot = (): ResultsView => this.view;

  private put(row: RecordRow, start: number, end: number): void {
    this.arrivals += 1;
    const id = `${start} ${end} ${row.key.kind} ${row.key.text}`;
    const before = this.windows.get(id);
    this.windows.set(id, {
      id,
      key: row.key.text,
      start,
      end,
      kind: row.headers.find((header) => header.name === "window.kind")?.value ?? "",
      value: row.value.kind === "null" ? null : row.value.text,
      updates: (before?.updates ?? 0) + 1,
      arrival: this.arrivals,
    });
    if (this.windows.size > WINDOWS_MAX) this.makeRoom();
  }

  /** A tenth at a time, so that it is not done for every window. */
  private makeRoom(): void {
    const byStart = [...this.windows.values()].sort((a, b) => a.start - b.start);
    const count = Math.trunc(WINDOWS_MAX / 10);
    for (const { id } of byStart.slice(0, count)) this.windows.delete(id);
    this.dropped += count;
  }

  private caughtUp(): void {
    this.caughtUpAt = this.arrivals;
    this.changed();
  }

  private changed(): void {
    if (this.isDirty) return;
    this.isDirty = true;
    this.schedule(() => this.show(), Math.max(SHOW_EVERY_MS, this.showTook * SHOW_PAUSE_FACTOR));
  }

  private show(): void {
    this.isDirty = false;
    const began = performance.now();
    this.view = {
      results: [...this.windows.values()],
      others: this.others,
      droppedWindows: this.dropped,
      records: this.records,
      isCaughtUp: this.open.size === 0,
      caughtUpAt: this.caughtUpAt,
    };
    for (const listener of this.listeners) listener();
    this.showTook = performance.now() - began;
  }
}

const compareText = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
const byWindow = (a: WindowResult, b: WindowResult) => a.start - b.start || a.end - b.end || compareText(a.key, b.key);

const ORDERS: Record<Sort, (a: WindowResult, b: WindowResult) => number> = {
  window: byWindow,
  key: (a, b) => compareText(a.key, b.key) || byWindow(a, b),
  value: (a, b) => compareText(a.value ?? "", b.value ?? "") || byWindow(a, b),
  kind: (a, b) => compareText(a.kind, b.kind) || byWindow(a, b),
  updates: (a, b) => a.updates - b.updates || byWindow(a, b),
  recent: (a, b) => b.arrival - a.arrival,
};

/** The results in the order and choice of the address. */
export function arranged(results: WindowResult[], search: ResultsSearch): WindowResult[] {
  const wanted = (search.filter ?? "").toLowerCase();
  const found = wanted === "" ? [...results] : results.filter(({ key }) => key.toLowerCase().includes(wanted));
  const order = ORDERS[search.sort ?? "recent"];
  return found.sort(search.descending === "yes" ? (a, b) => order(b, a) : order);
}
