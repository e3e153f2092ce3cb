// What is deployed and how it is doing, and the modules that can be deployed.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { Empty, Loading, ProblemNotice } from "../parts/Notice";
import { textOf } from "../search";
import { formatCount, formatDuration } from "../time";
import { DeployForm } from "./DeployForm";
import { Modules } from "./Modules";
import { lagOf, modulesQuery, type Processor, processorsQuery, statusQuery } from "./queries";
import { StateBadge } from "./StateBadge";

const here = getRouteApi("/processors");

export function processorsSearch(raw: Record<string, unknown>): { filter?: string; deploy?: string } {
  return { filter: textOf(raw, "filter"), deploy: textOf(raw, "deploy") };
}

export function ProcessorsPage() {
  const search = here.useSearch();
  const navigate = here.useNavigate();
  const { data, error } = useQuery(processorsQuery);
  const modules = useQuery(modulesQuery);
  const filter = search.filter ?? "";
  const found = (data?.processors ?? []).filter(({ name }) => name.toLowerCase().includes(filter.toLowerCase()));
  const deployed = modules.data?.modules.find(({ sha256 }) => sha256 === search.deploy);
  const setDeploy = (sha256: string | undefined) =>
    void navigate({ search: (before) => ({ ...before, deploy: sha256 }) });
  return (
    <>
      <h1>Processors</h1>
      <p>
        <input
          type="search"
          data-filter
          aria-label="Filter by name"
          placeholder="Filter by name ( / )"
          value={filter}
          onChange={(event) =>
            void navigate({ search: (before) => ({ ...before, filter: event.target.value || undefined }), replace: true })
          }
        />
      </p>
      {error !== null && <ProblemNotice error={error} what="The processors could not be listed" />}
      {error === null && data === undefined && <Loading what="processors" />}
      {data !== undefined && found.length === 0 && (
        <Empty>
          {filter === "" ? "Nothing is deployed yet: upload a module below." : `No processor's name has “${filter}” in it.`}
        </Empty>
      )}
      {found.length > 0 && (
        <div className="scroll">
          <table>
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col">State</th>
                <th scope="col" className="number">
                  Lag
                </th>
                <th scope="col">From</th>
                <th scope="col">To</th>
                <th scope="col">Window</th>
                <th scope="col">Emits</th>
              </tr>
            </thead>
            <tbody>
              {found.map((processor) => (
                <ProcessorRow key={processor.name} processor={processor} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      <Modules onDeploy={(module) => setDeploy(module.sha256)} />
      {deployed !== undefined && <DeployForm module={deployed} onClose={() => setDeploy(undefined)} />}
    </>
  );
}

function ProcessorRow({ processor }: { processor: Processor }) {
  const { data, error } = useQuery({ ...statusQuery(processor.name), refetchInterval: 3000 });
  const lag = data === undefined ? null : lagOf(data);
  return (
    <tr data-processor={processor.name}>
      <td>
        <Link to="/processors/$processor" params={{ processor: processor.name }}>
          {processor.name}
        </Link>
      </td>
      <td>
        {error === null ? <StateBadge state={data?.state ?? processor.state} /> : <span className="badge bad">unknown</span>}
      </td>
      <td className="number">{formatCount(lag)}</td>
      <td>
        <Link to="/topics/$topic/messages" params={{ topic: processor.input }}>
          {processor.input}
        </Link>
      </td>
      <td>
        <Link to="/topics/$topic/messages" params={{ topic: processor.output }}>
          {processor.output}
        </Link>
      </td>
      <td>{windowText(processor)}</td>
      <td>{processor.emit}</td>
    </tr>
  );
}

export function windowText({ window }: Pick<Processor, "window">): string {
  const every = window.advance_ms === undefined || window.advance_ms === null ? "" : ` every ${formatDuration(window.advance_ms)}`;
  const grace = window.grace_ms > 0 ? `, ${formatDuration(window.grace_ms)} grace` : "";
  return `${window.type} ${formatDuration(window.size_ms)}${every}${grace}`;
}
