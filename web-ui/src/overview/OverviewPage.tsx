// The cluster at a glance, from three requests.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { answered, api } from "../api/client";
import { Loading, ProblemNotice } from "../parts/Notice";
import { formatCount } from "../time";
import { topicsQuery } from "../topics/queries";
import { processorsQuery } from "../processors/queries";

export function OverviewPage() {
  const cluster = useQuery({
    queryKey: ["cluster"],
    queryFn: ({ signal }) => answered(api.GET("/api/v1/cluster", { signal })),
    refetchInterval: 10_000,
  });
  const topics = useQuery(topicsQuery());
  const processors = useQuery(processorsQuery);
  const own = topics.data?.topics.filter(({ internal }) => !internal) ?? [];
  return (
    <>
      <h1>Overview</h1>
      {cluster.isError && <ProblemNotice error={cluster.error} what="The cluster cannot be described" />}
      {cluster.isPending && <Loading what="the cluster" />}
      {cluster.data !== undefined && (
        <>
          <dl className="facts">
            <dt>Cluster</dt>
            <dd className="mono">{cluster.data.id}</dd>
            <dt>Version of this node</dt>
            <dd>{cluster.data.version}</dd>
            <dt>Topics</dt>
            <dd>
              {topics.data === undefined ? (
                "…"
              ) : (
                <Link to="/topics">
                  {formatCount(own.length)}
                  {topics.data.next !== null && " and more"}
                </Link>
              )}
            </dd>
            <dt>Partitions</dt>
            <dd>{topics.data === undefined ? "…" : formatCount(own.reduce((sum, { partitions }) => sum + partitions, 0))}</dd>
            <dt>Processors</dt>
            <dd>
              {processors.data === undefined ? (
                "…"
              ) : (
                <Link to="/processors">{formatCount(processors.data.processors.length)}</Link>
              )}
            </dd>
          </dl>
          <h2>Brokers</h2>
          <div className="scroll">
            <table>
              <thead>
                <tr>
                  <th scope="col" className="number">
                    Id
                  </th>
                  <th scope="col">Address</th>
                  <th scope="col">Rack</th>
                  <th scope="col">Role</th>
                </tr>
              </thead>
              <tbody>
                {cluster.data.brokers.map((broker) => (
                  <tr key={broker.id} data-broker={broker.id}>
                    <td className="number">{broker.id}</td>
                    <td className="mono">
                      {broker.host}:{broker.port}
                    </td>
                    <td>{broker.rack ?? "–"}</td>
                    <td>{broker.id === cluster.data.controller && <span className="badge good">controller</span>}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </>
      )}
      {topics.isError && <ProblemNotice error={topics.error} what="The topics could not be listed" />}
      {processors.isError && <ProblemNotice error={processors.error} what="The processors could not be listed" />}
    </>
  );
}
