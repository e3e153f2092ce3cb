// All topics, from one request.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useState } from "react";
import { Empty, Loading, ProblemNotice } from "../parts/Notice";
import { textOf } from "../search";
import { formatCount } from "../time";
import { CreateTopic } from "./CreateTopic";
import { DeleteTopic } from "./DeleteTopic";
import { TOPICS_MAX, topicsQuery } from "./queries";

/** How many rows are shown before a person asks for all. */
const ROWS_AT_FIRST = 500;

const here = getRouteApi("/topics");

export function topicsSearch(raw: Record<string, unknown>): { filter?: string; internal?: "shown"; all?: "shown" } {
  return {
    filter: textOf(raw, "filter"),
    internal: raw.internal === "shown" ? "shown" : undefined,
    all: raw.all === "shown" ? "shown" : undefined,
  };
}

export function TopicsPage() {
  const search = here.useSearch();
  const navigate = here.useNavigate();
  const [creates, setCreates] = useState(false);
  const [deletes, setDeletes] = useState<string | null>(null);
  const everything = useQuery(topicsQuery());
  const isCut = everything.data !== undefined && everything.data.next !== null;
  const filter = search.filter ?? "";
  const byPrefix = useQuery({ ...topicsQuery(filter), enabled: isCut && filter !== "" });
  const listed = (isCut && filter !== "" ? byPrefix.data : undefined) ?? everything.data;
  const wanted = filter.toLowerCase();
  const found = (listed?.topics ?? []).filter(
    ({ name, internal }) => (!internal || search.internal === "shown") && name.toLowerCase().includes(wanted),
  );
  const shown = search.all === "shown" ? found : found.slice(0, ROWS_AT_FIRST);
  const change = (part: Partial<typeof search>) =>
    void navigate({ search: (before) => ({ ...before, ...part }), replace: true });

  return (
    <>
      <div className="row center">
        <h1>Topics</h1>
        <button type="button" className="primary push" onClick={() => setCreates(true)}>
          Create topic
        </button>
      </div>
      <div className="row center">
        <input
          type="search"
          data-filter
          aria-label="Filter by name"
          placeholder="Filter by name ( / )"
          value={filter}
          onChange={(event) => change({ filter: event.target.value || undefined })}
        />
        <label className="check">
          <input
            type="checkbox"
            checked={search.internal === "shown"}
            onChange={(event) => change({ internal: event.target.checked ? "shown" : undefined })}
          />
          internal ones too
        </label>
        <span className="quiet" role="status">
          {listed !== undefined && `${formatCount(found.length)} topics`}
        </span>
      </div>
      {everything.isError && <ProblemNotice error={everything.error} what="The topics could not be listed" />}
      {everything.isPending && <Loading what="topics" />}
      {isCut && (
        <p className="quiet">
          The cluster has more than {formatCount(TOPICS_MAX)} topics: the filter is then the beginning of a name.
        </p>
      )}
      {listed !== undefined && found.length === 0 && (
        <Empty>{filter === "" ? "There are no topics yet." : `No topic's name has “${filter}” in it.`}</Empty>
      )}
      {shown.length > 0 && (
        <div className="scroll">
          <table>
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col" className="number">
                  Partitions
                </th>
                <th scope="col" className="number">
                  Replicas
                </th>
                <th scope="col">
                  <span className="hidden">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {shown.map((topic) => (
                <tr key={topic.id} data-topic={topic.name}>
                  <td>
                    <Link to="/topics/$topic/messages" params={{ topic: topic.name }}>
                      {topic.name}
                    </Link>{" "}
                    {topic.internal && <span className="badge">internal</span>}
                  </td>
                  <td className="number">{formatCount(topic.partitions)}</td>
                  <td className="number">{formatCount(topic.replication_factor)}</td>
                  <td className="number">
                    {!topic.internal && (
                      <button type="button" aria-label={`Delete ${topic.name}`} onClick={() => setDeletes(topic.name)}>
                        Delete
                      </button>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {found.length > shown.length && (
        <p className="row center">
          {formatCount(found.length - shown.length)} more.
          <button type="button" onClick={() => change({ all: "shown" })}>
            Show all
          </button>
        </p>
      )}
      {creates && <CreateTopic onClose={() => setCreates(false)} />}
      {deletes !== null && <DeleteTopic topic={deletes} onClose={() => setDeletes(null)} />}
    </>
  );
}
