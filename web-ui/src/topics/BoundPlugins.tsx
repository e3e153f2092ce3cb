// What stands between a topic and those who use it by this door.
import { useQuery } from "@tanstack/react-query";
import { topicPluginsQuery } from "../processors/queries";

const ROLES = [
  ["key_serde", "keys by"],
  ["value_serde", "values by"],
  ["partitioner", "partitions by"],
] as const;

export function BoundPlugins({ topic }: { topic: string }) {
  const { data } = useQuery(topicPluginsQuery(topic));
  if (data === undefined) return null;
  return (
    <>
      {ROLES.map(([role, what]) => {
        const digest = data[role];
        return (
          digest !== undefined &&
          digest !== null && (
            <span key={role} className="badge good" title={digest} data-role={role}>
              {what} {digest.slice(0, 8)}
            </span>
          )
        );
      })}
    </>
  );
}
