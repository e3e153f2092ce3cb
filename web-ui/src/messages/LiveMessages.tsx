// The live end of a topic: what comes in from now on. Another topic, partition or form is another component.
import { useEffect, useState, useSyncExternalStore } from "react";
import { follow, type StreamState } from "../api/events";
import { sentence } from "../api/problem";
import { readRecord, type RecordRow, recordsUrl } from "../api/records";
import { Empty, ProblemNotice } from "../parts/Notice";
import { Ring } from "../ring";
import { formatCount, type Zone } from "../time";
import { MessageGrid } from "./MessageGrid";
import styles from "./Messages.module.css";
import type { MessagesSearch } from "./search";

interface LiveMessagesProps {
  topic: string;
  search: MessagesSearch;
  zone: Zone;
  onOpen: (id: string) => void;
}

const RATE_EVERY_MS = 1000;

export function LiveMessages({ topic, search, zone, onOpen }: LiveMessagesProps) {
  const { partition, format = "auto" } = search;
  const [ring] = useState(() => new Ring<RecordRow>());
  const [state, setState] = useState<StreamState>({ phase: "connecting" });
  const [rate, setRate] = useState(0);
  const view = useSyncExternalStore(ring.subscribe, ring.snapshot);

  useEffect(() => {
    const stop = new AbortController();
    void follow({
      url: recordsUrl({ topic, partition, from: "latest", format }),
      signal: stop.signal,
      onState: setState,
      onEvent: ({ event, data }) => {
        if (event === "record") ring.push(readRecord(data, format), performance.now());
      },
    });
    const timer = setInterval(() => setRate(ring.rate(performance.now())), RATE_EVERY_MS);
    return () => {
      stop.abort();
      clearInterval(timer);
    };
  }, [ring, topic, partition, format]);

  return (
    <>
      <div className={styles.paging}>
        <button type="button" className="primary" onClick={() => ring.setPaused(!view.isPaused)}>
          {view.isPaused ? "Resume" : "Pause"}
        </button>
        <StreamBadge state={state} />
        <span role="status">
          {view.isPaused ? `Paused: ${formatCount(view.waiting)} wait` : `${formatCount(view.total)} messages`}
        </span>
        <span className="quiet">{formatCount(rate)} a second</span>
      </div>
      {state.phase === "ended" && <ProblemNotice error={state.error} what="The stream ended" />}
      {view.rows.length === 0 ? (
        <Empty>Waiting for the next message.</Empty>
      ) : (
        <MessageGrid rows={view.rows} zone={zone} open={search.open} onOpen={onOpen} />
      )}
    </>
  );
}

export function StreamBadge({ state }: { state: StreamState }) {
  switch (state.phase) {
    case "open":
      return (
        <span className="badge good" data-stream="open">
          live
        </span>
      );
    case "connecting":
      return (
        <span className="badge" data-stream="connecting">
          connecting
        </span>
      );
    case "waiting":
      return (
        <span className="badge warn" data-stream="waiting" title={state.error === null ? undefined : sentence(state.error)}>
          reconnecting
        </span>
      );
    case "ended":
      return (
        <span className="badge bad" data-stream="ended">
          ended
        </span>
      );
  }
}
