import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { Loading } from "../parts/Notice";
import { formatCount } from "../time";
import { topicQuery } from "./queries";

const here = getRouteApi("/topics/$topic/partitions");

export function PartitionsPage() {
  const { topic } = here.useParams();
  const { data } = useQuery(topicQuery(topic));
  if (data === undefined) return <Loading what="partitions" />;
  return (
    <div className="scroll">
      <table>
        <thead>
          <tr>
            <th scope="col" className="number">
              Partition
            </th>
            <th scope="col" className="number">
              First offset
            </th>
            <th scope="col" className="number">
              Next offset
            </th>
            <th scope="col" className="number">
              Leader
            </th>
            <th scope="col" className="number">
              Leader epoch
            </th>
            <th scope="col">Replicas</th>
            <th scope="col">In sync</th>
          </tr>
        </thead>
        <tbody>
          {data.partitions.map((row) => (
            <tr key={row.partition} data-partition={row.partition}>
              <td className="number">
                <Link to="/topics/$topic/messages" params={{ topic }} search={{ partition: row.partition }}>
                  {row.partition}
                </Link>
              </td>
              <td className="number">{formatCount(row.start)}</td>
              <td className="number">{formatCount(row.end)}</td>
              <td className="number">{row.leader ?? <span className="badge bad">none</span>}</td>
              <td className="number">{row.leader_epoch ?? "–"}</td>
              <td>{row.replicas.join(", ")}</td>
              <td>
                {row.isr.join(", ")}{" "}
                {row.isr.length < row.replicas.length && <span className="badge warn">under-replicated</span>}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
