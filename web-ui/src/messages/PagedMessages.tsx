// A page of messages. The way on is the node's cursor; the way back is what was passed, kept in the browser's history.
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { getRouteApi, useRouterState } from "@tanstack/react-router";
import { fetchLast, fetchRecords, type RecordRow } from "../api/records";
import { Empty, Loading, ProblemNotice } from "../parts/Notice";
import { formatCount, type Zone } from "../time";
import type { TopicDetail } from "../topics/queries";
import { MessageGrid } from "./MessageGrid";
import styles from "./Messages.module.css";
import { type MessagesSearch, PAGE_SIZE_DEFAULT } from "./search";

const here = getRouteApi("/topics/$topic/messages");

interface PagedMessagesProps {
  topic: string;
  search: MessagesSearch;
  detail: TopicDetail;
  zone: Zone;
  onOpen: (id: string) => void;
}

interface Page {
  rows: RecordRow[];
  /** null: these are the last ones. */
  next: string | null;
}

declare module "@tanstack/react-router" {
  interface HistoryState {
    /** The cursors of the pages before this one; an empty text is the first page. */
    trail?: string[];
  }
}

export function PagedMessages({ topic, search, detail, zone, onOpen }: PagedMessagesProps) {
  const navigate = here.useNavigate();
  const trail = useRouterState({ select: ({ location }) => location.state.trail }) ?? [];
  const limit = search.limit ?? PAGE_SIZE_DEFAULT;
  const format = search.format ?? "auto";
  const { partition, cursor } = search;
  const from = search.from ?? "last";
  const isLast = from === "last" && cursor === undefined;
  const bounds = detail.partitions
    .filter((row) => partition === undefined || row.partition === partition)
    .map((row) => ({ partition: row.partition, start: row.start ?? 0, end: row.end ?? 0 }));

  const { data, error, isFetching, isPlaceholderData, refetch } = useQuery<Page>({
    queryKey: ["records", topic, { partition, from, cursor, limit, format }, isLast ? bounds : null],
    queryFn: async ({ signal }) => {
      if (isLast) return { rows: await fetchLast({ topic, format }, bounds, limit, signal), next: null };
      // A cursor names its partitions itself.
      const place = cursor === undefined ? { from, partition } : { cursor, partition };
      return fetchRecords({ topic, ...place, limit, format }, signal);
    },
    placeholderData: keepPreviousData,
  });

  const go = (to: string | undefined, passed: string[]) =>
    void navigate({
      search: (before) => ({ ...before, cursor: to, open: undefined }),
      state: (before) => ({ ...before, trail: passed }),
    });
  const previous = trail.at(-1);
  const next = data?.next ?? null;
  // A page that is not full has come to the end; what comes later is found by asking again.
  const isEnd = next === null || (data?.rows.length ?? 0) < limit;

  return (
    <>
      {error !== null && <ProblemNotice error={error} what="The messages cannot be read" />}
      {data === undefined && error === null && <Loading what="messages" />}
      {data !== undefined && error === null && (
        <>
          {data.rows.length === 0 ? (
            <Empty>
              {cursor === undefined ? "There are no messages here." : "There are no more messages yet."}
            </Empty>
          ) : (
            <MessageGrid rows={data.rows} zone={zone} open={search.open} onOpen={onOpen} />
          )}
          <div className={styles.paging}>
            <button type="button" disabled={cursor === undefined} onClick={() => go(undefined, [])}>
              First page
            </button>
            <button
              type="button"
              disabled={previous === undefined}
              onClick={() => go(previous || undefined, trail.slice(0, -1))}
            >
              Previous page
            </button>
            <button
              type="button"
              disabled={isEnd || isPlaceholderData}
              onClick={() => next !== null && go(next, [...trail, cursor ?? ""])}
            >
              Next page
            </button>
            <button type="button" onClick={() => void refetch()}>
              Reload
            </button>
            <span className="quiet" role="status">
              {isFetching ? "Reading…" : `${formatCount(data.rows.length)} messages`}
              {isEnd && !isFetching && ", up to the end"}
            </span>
          </div>
        </>
      )}
    </>
  );
}
