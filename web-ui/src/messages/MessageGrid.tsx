// Messages as rows, of which only those in sight are in the page.
import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import type { RecordRow } from "../api/records";
import { formatTime, type Zone } from "../time";
import styles from "./Messages.module.css";
import { PayloadLine } from "./PayloadText";

const COLUMNS = ["Partition", "Offset", "Time", "Key", "Value", "Headers"];

interface MessageGridProps {
  rows: RecordRow[];
  zone: Zone;
  open: string | undefined;
  onOpen: (id: string) => void;
}

export function MessageGrid({ rows, zone, open, onOpen }: MessageGridProps) {
  const body = useRef<HTMLDivElement>(null);
  const [focused, setFocused] = useState<string | null>(null);
  // The row that has the focus keeps it while others come in above it.
  const wantsFocus = useRef(false);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => body.current,
    estimateSize: () => 32,
    overscan: 12,
    getItemKey: (index) => rows[index]?.id ?? index,
  });
  const at = Math.max(0, rows.findIndex((row) => row.id === (focused ?? open)));
  const inSight = virtual.getVirtualItems();

  useEffect(() => {
    if (!wantsFocus.current) return;
    const line = body.current?.querySelector<HTMLElement>(`[data-id="${focused}"]`);
    if (line !== null && line !== undefined) {
      wantsFocus.current = false;
      line.focus();
    }
  }, [focused, inSight]);

  const moveTo = (index: number) => {
    const row = rows[Math.min(Math.max(index, 0), rows.length - 1)];
    if (row === undefined) return;
    wantsFocus.current = true;
    setFocused(row.id);
    virtual.scrollToIndex(rows.indexOf(row));
  };
  const onKey = (event: KeyboardEvent) => {
    const page = Math.max(1, inSight.length - 12);
    const moves: Record<string, number> = {
      j: at + 1,
      ArrowDown: at + 1,
      k: at - 1,
      ArrowUp: at - 1,
      PageDown: at + page,
      PageUp: at - page,
      Home: 0,
      End: rows.length - 1,
    };
    const to = moves[event.key];
    const row = rows[at];
    if (to !== undefined) moveTo(to);
    else if ((event.key === "Enter" || event.key === " ") && row !== undefined) onOpen(row.id);
    else return;
    event.preventDefault();
  };

  return (
    <div className={styles.grid} role="grid" aria-label="Messages" aria-rowcount={rows.length + 1} onKeyDown={onKey}>
      <div role="rowgroup">
        <div className={styles.head} role="row" aria-rowindex={1}>
          {COLUMNS.map((name) => (
            <div key={name} role="columnheader" className={name === "Offset" || name === "Partition" ? styles.number : ""}>
              {name}
            </div>
          ))}
        </div>
      </div>
      <div className={styles.body} role="rowgroup" ref={body}>
        <div className={styles.room} role="presentation" style={{ height: virtual.getTotalSize() }}>
          {inSight.map((item) => {
            const row = rows[item.index];
            if (row === undefined) return null;
            return (
              <div
                key={item.key}
                className={styles.line}
                role="row"
                aria-rowindex={item.index + 2}
                aria-selected={row.id === open}
                tabIndex={item.index === at ? 0 : -1}
                data-id={row.id}
                data-offset={row.offset}
                data-partition={row.partition}
                style={{ transform: `translateY(${item.start}px)` }}
                onClick={() => {
                  setFocused(row.id);
                  onOpen(row.id);
                }}
              >
                <div role="gridcell" className={styles.number}>
                  {row.partition}
                </div>
                <div role="gridcell" className={styles.number}>
                  {row.offset}
                </div>
                <div role="gridcell" className="mono">
                  {formatTime(row.timestamp, zone)}
                </div>
                <div role="gridcell" className="mono">
                  <PayloadLine payload={row.key} />
                </div>
                <div role="gridcell" className="mono">
                  <PayloadLine payload={row.value} isValue />
                </div>
                <div role="gridcell">{row.headers.length === 0 ? "" : row.headers.length}</div>
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}
