// The results of a processor's windows as they move: the latest of each key and window.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useEffect, useMemo, useState, useSyncExternalStore } from "react";
import { follow, type StreamState } from "../api/events";
import { readRecord, recordsUrl } from "../api/records";
import { StreamBadge } from "../messages/LiveMessages";
import { Empty, Loading, ProblemNotice } from "../parts/Notice";
import { useZone } from "../parts/zone";
import { formatCount, formatTime } from "../time";
import { topicQuery } from "../topics/queries";
import { Chart } from "./Chart";
import { processorQuery } from "./queries";
import styles from "./Results.module.css";
import { arranged, Results, type ResultsSearch, ROWS_PER_PAGE, type Sort } from "./results";

const here = getRouteApi("/processors/$processor/results");

const COLUMNS: [sort: Sort, name: string][] = [
  ["key", "Key"],
  ["window", "Window"],
  ["kind", "Kind"],
  ["value", "Value"],
  ["updates", "Updates"],
];

export function ResultsPage() {
  const { processor } = here.useParams();
  const { data } = useQuery(processorQuery(processor));
  const output = data?.output;
  // The ends are those of when reading begins; what comes after them is followed.
  const detail = useQuery({ ...topicQuery(output ?? ""), enabled: output !== undefined, refetchInterval: false });
  if (detail.error !== null) return <ProblemNotice error={detail.error} what="The output topic cannot be read" />;
  if (output === undefined || detail.data === undefined) return <Loading what="results" />;
  return <FollowedResults key={output} output={output} first={detail.data} />;
}

interface FollowedResultsProps {
  output: string;
  first: { partitions: { partition: number; start: number | null; end: number | null }[] };
}

function FollowedResults({ output, first }: FollowedResultsProps) {
  // Whatever is asked of the topic later, the ends of the beginning stay.
  const [ends] = useState(() =>
    first.partitions.map(({ partition, start, end }) => ({ partition, start: start ?? 0, end: end ?? 0 })),
  );
  const [results] = useState(() => new Results(ends));
  const [state, setState] = useState<StreamState>({ phase: "connecting" });
  useEffect(() => {
    const stop = new AbortController();
    let pings = 0;
    void follow({
      url: recordsUrl({ topic: output, from: "earliest", format: "auto" }),
      signal: stop.signal,
      onState: (next) => {
        if (next.phase === "open") pings = 0;
        setState(next);
      },
      onEvent: ({ event, data }) => {
        if (event === "record") results.take(readRecord(data, "auto"));
        // The first ping of a stream comes at once; another one, when nothing has come for a while.
        else if (event === "ping") {
          pings += 1;
          if (pings > 1) results.idle();
        }
      },
    });
    return () => stop.abort();
  }, [output, results]);
  return <ResultsTable results={results} state={state} />;
}

function ResultsTable({ results, state }: { results: Results; state: StreamState }) {
  const search = here.useSearch();
  const navigate = here.useNavigate();
  const [zone] = useZone();
  const view = useSyncExternalStore(results.subscribe, results.snapshot);
  const { sort, descending, filter } = search;
  const found = useMemo(
    () => arranged(view.results, { sort, descending, filter }),
    [view.results, sort, descending, filter],
  );
  const pages = Math.max(1, Math.ceil(found.length / ROWS_PER_PAGE));
  const page = Math.min(search.page ?? 1, pages);
  const rows = found.slice((page - 1) * ROWS_PER_PAGE, page * ROWS_PER_PAGE);
  const change = (part: Partial<ResultsSearch>, replace = false) =>
    void navigate({ search: (before) => ({ ...before, ...part }), replace });
  const sortBy = (column: Sort) =>
    change({ sort: column, descending: (sort ?? "recent") === column && descending !== "yes" ? "yes" : undefined, page: undefined });

  return (
    <div
      data-results={view.isCaughtUp ? "caught-up" : "reading"}
      data-windows={found.length}
      data-records={view.records}
      data-page={page}
      data-pages={pages}
    >
      <div className="row center">
        <input
          type="search"
          data-filter
          aria-label="Filter by key"
          placeholder="Filter by key ( / )"
          value={filter ?? ""}
          onChange={(event) => change({ filter: event.target.value || undefined, page: undefined }, true)}
        />
        <label>
          Sort by{" "}
          <select
            value={sort ?? "recent"}
            onChange={(event) => change({ sort: event.target.value as Sort, descending: undefined, page: undefined })}
          >
            {COLUMNS.map(([value, name]) => (
              <option key={value} value={value}>
                {name}
              </option>
            ))}
            <option value="recent">Latest first</option>
          </select>
        </label>
        <StreamBadge state={state} />
        <span role="status">
          {formatCount(found.length)} windows{view.isCaughtUp ? "" : ", reading…"}
        </span>
        <span className="quiet">{formatCount(view.records)} results read</span>
        {view.others > 0 && <span className="badge warn">{formatCount(view.others)} records are no results</span>}
        {view.droppedWindows > 0 && (
          <span className="badge warn">{formatCount(view.droppedWindows)} earliest windows are left out</span>
        )}
      </div>
      {state.phase === "ended" && <ProblemNotice error={state.error} what="The stream ended" />}
      {search.chart !== undefined && (
        <Chart
          chosen={search.chart}
          results={view.results}
          field={search.field}
          zone={zone}
          onField={(field) => change({ field }, true)}
          onClose={() => change({ chart: undefined, field: undefined })}
        />
      )}
      {found.length === 0 ? (
        <Empty>{nothing(view.isCaughtUp, filter)}</Empty>
      ) : (
        <div className="scroll" tabIndex={0} role="region" aria-label="Results">
          <table>
            <thead>
              <tr>
                {COLUMNS.map(([column, name]) => (
                  <th
                    key={column}
                    scope="col"
                    className={column === "updates" ? "number" : ""}
                    aria-sort={(sort ?? "recent") !== column ? "none" : descending === "yes" ? "descending" : "ascending"}
                  >
                    <button type="button" onClick={() => sortBy(column)}>
                      {name}
                      {(sort ?? "recent") === column && (descending === "yes" ? " ↓" : " ↑")}
                    </button>
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr
                  key={row.id}
                  data-result
                  data-key={row.key}
                  data-window-start={row.start}
                  data-window-end={row.end}
                  data-kind={row.kind}
                  data-value={row.value ?? "null"}
                >
                  <td>
                    <button
                      type="button"
                      className={styles.key}
                      title="Show its chart"
                      onClick={() => change({ chart: row.key, field: undefined })}
                    >
                      {row.key === "" ? "(empty)" : row.key}
                    </button>
                  </td>
                  <td className="mono">
                    {formatTime(row.start, zone)} – {formatTime(row.end, zone)}
                  </td>
                  <td>
                    <span className={row.kind === "final" ? "badge good" : "badge"}>{row.kind}</span>
                  </td>
                  <td key={row.arrival} className={`${styles.value} ${row.arrival > view.caughtUpAt ? "moved" : ""}`}>
                    {row.value ?? "null"}
                  </td>
                  <td className="number">{formatCount(row.updates)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <nav className={styles.paging} aria-label="Pages of results">
        <button type="button" disabled={page <= 1} onClick={() => change({ page: undefined })}>
          First page
        </button>
        <button type="button" disabled={page <= 1} onClick={() => change({ page: page - 1 })}>
          Previous page
        </button>
        <button type="button" disabled={page >= pages} onClick={() => change({ page: page + 1 })}>
          Next page
        </button>
        <span role="status">
          Page {formatCount(page)} of {formatCount(pages)}
        </span>
      </nav>
    </div>
  );
}

function nothing(isCaughtUp: boolean, filter: string | undefined): string {
  if (!isCaughtUp) return "Reading what there is.";
  return filter === undefined ? "No window has a result yet." : `No key has “${filter}” in it.`;
}
