// A processor: what it is, what its tasks do, and what can be done with it.
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, Link, Outlet, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { answered, api } from "../api/client";
import { Empty, Loading, ProblemNotice } from "../parts/Notice";
import tabs from "../parts/Tabs.module.css";
import { Time } from "../parts/Time";
import { TypedConfirmation } from "../parts/TypedConfirmation";
import { formatCount } from "../time";
import { DeployForm } from "./DeployForm";
import { windowText } from "./ProcessorsPage";
import { lagOf, modulesQuery, processorQuery, statusQuery } from "./queries";
import { StateBadge } from "./StateBadge";

const here = getRouteApi("/processors/$processor");

export function ProcessorPage() {
  const { processor: name } = here.useParams();
  const [does, setDoes] = useState<"change" | "delete" | null>(null);
  const queries = useQueryClient();
  const { data, error } = useQuery(processorQuery(name));
  const status = useQuery(statusQuery(name));
  const modules = useQuery(modulesQuery);
  const module = modules.data?.modules.find(({ sha256 }) => sha256 === data?.module);
  const pausing = useMutation({
    mutationFn: (action: "pause" | "resume") => {
      const call = { params: { path: { name } }, body: {} };
      return action === "pause"
        ? answered(api.POST("/api/v1/processors/{name}/pause", call))
        : answered(api.POST("/api/v1/processors/{name}/resume", call));
    },
    onSettled: () => queries.invalidateQueries(),
  });
  const state = status.data?.state ?? data?.state;
  return (
    <>
      <div className="row center">
        <h1>
          <Link to="/processors">Processors</Link> / {name}
        </h1>
        {state !== undefined && <StateBadge state={state} />}
        {data !== undefined && <span className="quiet">version {data.version}</span>}
        {data !== undefined && (
          <div className="row push">
            {data.state === "running" && (
              <button type="button" disabled={pausing.isPending} onClick={() => pausing.mutate("pause")}>
                Pause
              </button>
            )}
            {(data.state === "paused" || state === "failed") && (
              <button type="button" disabled={pausing.isPending} onClick={() => pausing.mutate("resume")}>
                Resume
              </button>
            )}
            <button type="button" disabled={module === undefined} onClick={() => setDoes("change")}>
              Change
            </button>
            <button type="button" className="danger" onClick={() => setDoes("delete")}>
              Delete processor
            </button>
          </div>
        )}
      </div>
      {pausing.isError && <ProblemNotice error={pausing.error} what="The processor was not changed" />}
      <nav className={tabs.tabs} aria-label="Parts of the processor">
        <Link
          to="/processors/$processor"
          params={{ processor: name }}
          activeOptions={{ exact: true, includeSearch: false }}
        >
          Status
        </Link>
        <Link to="/processors/$processor/results" params={{ processor: name }} activeOptions={{ includeSearch: false }}>
          Results
        </Link>
        <Link to="/processors/$processor/logs" params={{ processor: name }} activeOptions={{ includeSearch: false }}>
          Logs
        </Link>
      </nav>
      {error !== null ? <ProblemNotice error={error} what="The processor cannot be shown" /> : <Outlet />}
      {does === "change" && data !== undefined && module !== undefined && (
        <DeployForm module={module} current={data} onClose={() => setDoes(null)} />
      )}
      {does === "delete" && <DeleteProcessor name={name} onClose={() => setDoes(null)} />}
    </>
  );
}

function DeleteProcessor({ name, onClose }: { name: string; onClose: () => void }) {
  const [keepsState, setKeepsState] = useState(false);
  const queries = useQueryClient();
  const navigate = useNavigate();
  const deleting = useMutation({
    mutationFn: () => {
      const params = { path: { name }, query: { keep_state: keepsState } };
      return answered(api.DELETE("/api/v1/processors/{name}", { params }));
    },
    onSuccess: async () => {
      onClose();
      await navigate({ to: "/processors" });
      await queries.invalidateQueries();
    },
  });
  return (
    <TypedConfirmation
      title="Delete processor"
      name={name}
      action="Delete processor"
      failure="The processor was not deleted"
      error={deleting.error}
      isPending={deleting.isPending}
      onConfirm={() => deleting.mutate()}
      onClose={onClose}
    >
      It stops, and its state goes with it; results and dead letters stay.{" "}
      <label className="check">
        <input type="checkbox" checked={keepsState} onChange={(event) => setKeepsState(event.target.checked)} />
        keep its state
      </label>
    </TypedConfirmation>
  );
}

export function ProcessorStatus() {
  const { processor: name } = here.useParams();
  const { data } = useQuery(processorQuery(name));
  const { data: status, error } = useQuery(statusQuery(name));
  return (
    <>
      {data !== undefined && (
        <dl className="facts">
          <dt>Input</dt>
          <dd>
            <Link to="/topics/$topic/messages" params={{ topic: data.input }}>
              {data.input}
            </Link>{" "}
            from {data.from}
          </dd>
          <dt>Output</dt>
          <dd>
            <Link to="/topics/$topic/messages" params={{ topic: data.output }}>
              {data.output}
            </Link>
          </dd>
          <dt>Dead letters</dt>
          <dd>
            <Link to="/topics/$topic/messages" params={{ topic: data.dead_letter_topic }}>
              {data.dead_letter_topic}
            </Link>
          </dd>
          <dt>State</dt>
          <dd>
            <Link to="/topics/$topic/messages" params={{ topic: data.changelog_topic }}>
              {data.changelog_topic}
            </Link>
          </dd>
          <dt>Window</dt>
          <dd>
            {windowText(data)}, emits {data.emit === "update" ? "updates" : "final results"}
          </dd>
          <dt>Module</dt>
          <dd className="mono">{data.module}</dd>
          {Object.entries(data.config).map(([key, value]) => (
            <div key={key} style={{ display: "contents" }}>
              <dt>
                <code>{key}</code>
              </dt>
              <dd className="mono">{value}</dd>
            </div>
          ))}
        </dl>
      )}
      <h2>Tasks</h2>
      {error !== null && <ProblemNotice error={error} what="The status cannot be shown" />}
      {error === null && status === undefined && <Loading what="the status" />}
      {status !== undefined && status.tasks.length === 0 && <Empty>This node runs no task of it.</Empty>}
      {status !== undefined && status.tasks.length > 0 && (
        <>
          <p className="quiet">
            Lag in all: <span data-lag>{formatCount(lagOf(status))}</span>
          </p>
          <div className="scroll" tabIndex={0} role="region" aria-label="Tasks">
            <table>
              <thead>
                <tr>
                  {["Partition", "Broker", "State", "Position", "End", "Lag", "Stream time", "Processed", "Late"].map(header)}
                  {["Rejected", "Without key", "Calls", "Traps"].map(header)}
                </tr>
              </thead>
              <tbody>
                {status.tasks.map((task) => (
                  <tr key={task.partition} data-task={task.partition} data-position={task.position}>
                    <td className="number">{task.partition}</td>
                    <td className="number">{task.broker}</td>
                    <td>
                      <StateBadge state={task.state} />
                      {task.reason !== undefined && task.reason !== null && <div>{task.reason}</div>}
                    </td>
                    <td className="number">{formatCount(task.position)}</td>
                    <td className="number">{formatCount(task.end_offset)}</td>
                    <td className="number">{formatCount(task.lag)}</td>
                    <td>{task.stream_time === null ? "–" : <Time millis={task.stream_time} />}</td>
                    <td className="number">{formatCount(task.processed)}</td>
                    <td className="number">{formatCount(task.late)}</td>
                    <td className="number">{formatCount(task.rejected)}</td>
                    <td className="number">{formatCount(task.null_keys)}</td>
                    <td className="number">{formatCount(task.guest_calls)}</td>
                    <td className="number">{formatCount(task.traps)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </>
      )}
    </>
  );
}

const header = (name: string) => (
  <th key={name} scope="col" className={name === "State" || name === "Stream time" ? "" : "number"}>
    {name}
  </th>
);
