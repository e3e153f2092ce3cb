// The newest rows of a stream: a bounded ring outside of React, which is told at most once a frame.
//
// While it is paused what is shown stands still; rows go on coming in behind it and are counted.

export const RING_ROWS_MAX = 2000;
const RATE_SECONDS = 5;

export interface RingView<Row> {
  /** Newest first. */
  rows: Row[];
  isPaused: boolean;
  /** Rows that came while it is paused. */
  waiting: number;
  /** Rows that came since the stream began. */
  total: number;
}

export class Ring<Row> {
  private rows: Row[] = [];
  private first = 0;
  private waiting = 0;
  private total = 0;
  private view: RingView<Row> = { rows: [], isPaused: false, waiting: 0, total: 0 };
  private listeners = new Set<() => void>();
  private isDirty = false;
  /** Rows by the second they came in. */
  private seconds = new Map<number, number>();
  private readonly schedule: (change: () => void) => void;

  constructor(schedule: (change: () => void) => void = (change) => requestAnimationFrame(change)) {
    this.schedule = schedule;
  }

  push(row: Row, now: number): void {
    if (this.rows.length < RING_ROWS_MAX) this.rows.push(row);
    else {
      this.rows[this.first] = row;
      this.first = (this.first + 1) % RING_ROWS_MAX;
    }
    this.total += 1;
    if (this.view.isPaused) this.waiting += 1;
    const second = Math.trunc(now / 1000);
    this.seconds.set(second, (this.seconds.get(second) ?? 0) + 1);
    if (this.seconds.size > RATE_SECONDS * 2) this.forget(second);
    this.changed();
  }

  /** Rows a second, over the last whole seconds. */
  rate(now: number): number {
    const current = Math.trunc(now / 1000);
    let count = 0;
    for (let second = current - RATE_SECONDS; second < current; second += 1) count += this.seconds.get(second) ?? 0;
    return count / RATE_SECONDS;
  }

  setPaused(isPaused: boolean): void {
    if (isPaused === this.view.isPaused) return;
    this.waiting = 0;
    this.publish(isPaused);
  }

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  snapshot = (): RingView<Row> => this.view;

  private forget(current: number): void {
    for (const second of this.seconds.keys()) {
      if (second < current - RATE_SECONDS) this.seconds.delete(second);
    }
  }

  private changed(): void {
    if (this.isDirty) return;
    this.isDirty = true;
    this.schedule(() => {
      this.isDirty = false;
      this.publish(this.view.isPaused);
    });
  }

  private publish(isPaused: boolean): void {
    const rows = isPaused && this.view.isPaused ? this.view.rows : this.ordered();
    this.view = { rows, isPaused, waiting: this.waiting, total: this.total };
    for (const listener of this.listeners) listener();
  }

  private ordered(): Row[] {
    return [...this.rows.slice(this.first), ...this.rows.slice(0, this.first)].reverse();
  }
}
