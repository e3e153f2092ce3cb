import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { Empty, Loading, ProblemNotice } from "../parts/Notice";
import { configsQuery } from "./queries";

const here = getRouteApi("/topics/$topic/configs");

export function ConfigsPage() {
  const { topic } = here.useParams();
  const { filter = "" } = here.useSearch();
  const navigate = here.useNavigate();
  const { data, error } = useQuery(configsQuery(topic));
  if (error !== null) return <ProblemNotice error={error} what="The configuration cannot be shown" />;
  if (data === undefined) return <Loading what="configuration" />;
  const found = data.configs.filter(({ name }) => name.includes(filter.toLowerCase()));
  return (
    <>
      <input
        type="search"
        data-filter
        aria-label="Filter by key"
        placeholder="Filter by key ( / )"
        value={filter}
        onChange={(event) => void navigate({ search: { filter: event.target.value || undefined }, replace: true })}
      />
      {found.length === 0 ? (
        <Empty>No key has “{filter}” in it.</Empty>
      ) : (
        <div className="scroll">
          <table>
            <thead>
              <tr>
                <th scope="col">Key</th>
                <th scope="col">Value</th>
                <th scope="col">From</th>
              </tr>
            </thead>
            <tbody>
              {found.map((config) => (
                <tr key={config.name}>
                  <td>
                    <code>{config.name}</code>
                    {config.documentation !== undefined && <div className="quiet">{config.documentation}</div>}
                  </td>
                  <td className="mono">{config.sensitive ? "(secret)" : (config.value ?? <i>none</i>)}</td>
                  <td>
                    <span className={config.source === "DEFAULT_CONFIG" ? "badge" : "badge warn"}>
                      {config.source.toLowerCase().replaceAll("_", " ")}
                    </span>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}
