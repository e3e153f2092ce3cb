// What a processor's module logs, as it does.
import { getRouteApi } from "@tanstack/react-router";
import { useEffect, useState, useSyncExternalStore } from "react";
import { doorUrl } from "../api/client";
import { follow, type StreamState } from "../api/events";
import { StreamBadge } from "../messages/LiveMessages";
import { Empty, ProblemNotice } from "../parts/Notice";
import { Time } from "../parts/Time";
import { Ring } from "../ring";
import { formatCount } from "../time";
import { isShown, type Level, LEVELS, type LogEntry } from "./logs";

const here = getRouteApi("/processors/$processor/logs");
const KINDS: Partial<Record<Level, string>> = { warn: "warn", error: "bad" };

export function LogsPage() {
  const { processor } = here.useParams();
  return <Logs key={processor} processor={processor} />;
}

function Logs({ processor }: { processor: string }) {
  const { level } = here.useSearch();
  const navigate = here.useNavigate();
  const [ring] = useState(() => new Ring<LogEntry>());
  const [state, setState] = useState<StreamState>({ phase: "connecting" });
  const view = useSyncExternalStore(ring.subscribe, ring.snapshot);
  useEffect(() => {
    const stop = new AbortController();
    void follow({
      url: doorUrl(`/api/v1/processors/${encodeURIComponent(processor)}/logs`),
      signal: stop.signal,
      onState: setState,
      onEvent: ({ event, data }) => {
        if (event === "log") ring.push(JSON.parse(data) as LogEntry, performance.now());
      },
    });
    return () => stop.abort();
  }, [ring, processor]);
  const shown = view.rows.filter((entry) => isShown(entry, level));
  return (
    <>
      <div className="row center">
        <label>
          Level{" "}
          <select
            data-filter
            value={level ?? "trace"}
            onChange={(event) => {
              const chosen = event.target.value as Level;
              void navigate({ search: (before) => ({ ...before, level: chosen === "trace" ? undefined : chosen }), replace: true });
            }}
          >
            {LEVELS.map((name) => (
              <option key={name} value={name}>
                {name === "trace" ? "all" : name === "error" ? "error" : `${name} and worse`}
              </option>
            ))}
          </select>
        </label>
        <button type="button" onClick={() => ring.setPaused(!view.isPaused)}>
          {view.isPaused ? "Resume" : "Pause"}
        </button>
        <StreamBadge state={state} />
        <span role="status">
          {view.isPaused ? `Paused: ${formatCount(view.waiting)} wait` : `${formatCount(view.total)} entries`}
        </span>
      </div>
      {state.phase === "ended" && <ProblemNotice error={state.error} what="The stream ended" />}
      {shown.length === 0 ? (
        <Empty>Nothing is logged yet.</Empty>
      ) : (
        <div className="scroll" tabIndex={0} role="region" aria-label="Log entries, the newest first">
          <table>
            <thead>
              <tr>
                <th scope="col">Time</th>
                <th scope="col">Level</th>
                <th scope="col" className="number">
                  Partition
                </th>
                <th scope="col">Message</th>
                <th scope="col">Fields</th>
              </tr>
            </thead>
            <tbody>
              {shown.map((entry) => (
                <tr key={entry.sequence} data-sequence={entry.sequence} data-level={entry.level}>
                  <td>
                    <Time millis={entry.time} />
                  </td>
                  <td>
                    <span className={`badge ${KINDS[entry.level] ?? ""}`}>{entry.level}</span>
                  </td>
                  <td className="number">{entry.partition}</td>
                  <td className="mono">{entry.message}</td>
                  <td className="mono">{entry.fields.map(({ name, value }) => `${name}=${value}`).join(" ")}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}
