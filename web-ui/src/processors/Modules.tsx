// Modules: drop one, and see what it says of itself.
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type DragEvent, useId, useState } from "react";
import { answered, api } from "../api/client";
import { Empty, Loading, ProblemNotice } from "../parts/Notice";
import { formatBytes } from "../time";
import styles from "./Modules.module.css";
import { type Module, modulesQuery, uploadModule } from "./queries";

/** Worlds whose modules make windowed processors. */
const DEPLOYABLE = /aggregator$/;

export function Modules({ onDeploy }: { onDeploy: (module: Module) => void }) {
  const { data, error } = useQuery(modulesQuery);
  const queries = useQueryClient();
  const [isOver, setOver] = useState(false);
  const picker = useId();
  const uploading = useMutation({
    mutationFn: uploadModule,
    onSuccess: () => queries.invalidateQueries({ queryKey: modulesQuery.queryKey }),
  });
  const upload = (file: File | undefined) => {
    if (file !== undefined && !uploading.isPending) uploading.mutate(file);
  };
  const onDrop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    upload(event.dataTransfer.files[0]);
  };
  return (
    <section aria-label="Modules">
      <h2>Modules</h2>
      <div
        className={styles.drop}
        data-over={isOver}
        data-drop="module"
        onDragOver={(event) => {
          event.preventDefault();
          setOver(true);
        }}
        onDragLeave={() => setOver(false)}
        onDrop={onDrop}
      >
        <label htmlFor={picker}>Drop a WebAssembly component here, or choose one: </label>
        <input
          id={picker}
          type="file"
          accept=".wasm,application/wasm"
          disabled={uploading.isPending}
          onChange={(event) => {
            upload(event.target.files?.[0]);
            event.target.value = "";
          }}
        />
        <p role="status">
          {uploading.isPending && "Uploading and compiling…"}
          {uploading.isSuccess && `Uploaded ${uploading.data.name} ${uploading.data.version}`}
        </p>
      </div>
      {uploading.isError && <ProblemNotice error={uploading.error} what="The module was not taken" />}
      {error !== null && <ProblemNotice error={error} what="The modules could not be listed" />}
      {error === null && data === undefined && <Loading what="modules" />}
      {data !== undefined && data.modules.length === 0 && <Empty>There are no modules yet.</Empty>}
      {data?.modules.map((module) => (
        <ModuleCard key={module.sha256} module={module} onDeploy={onDeploy} />
      ))}
    </section>
  );
}

function ModuleCard({ module, onDeploy }: { module: Module; onDeploy: (module: Module) => void }) {
  const queries = useQueryClient();
  const deleting = useMutation({
    mutationFn: () =>
      answered(api.DELETE("/api/v1/modules/{sha256}", { params: { path: { sha256: module.sha256 } } })),
    onSuccess: () => queries.invalidateQueries({ queryKey: modulesQuery.queryKey }),
  });
  return (
    <article className={styles.card} data-module={module.sha256} aria-label={`Module ${module.name}`}>
      <div className="row center">
        <h3>
          {module.name} {module.version}
        </h3>
        <span className="badge">{module.world}</span>
        <span className="quiet">{formatBytes(module.size)}</span>
        <code className="quiet" title={module.sha256}>
          {module.sha256.slice(0, 12)}
        </code>
        {DEPLOYABLE.test(module.world) && (
          <button type="button" className="primary push" onClick={() => onDeploy(module)}>
            Deploy
          </button>
        )}
        <button
          type="button"
          className={DEPLOYABLE.test(module.world) ? "" : "push"}
          aria-label={`Delete module ${module.name}`}
          disabled={deleting.isPending}
          onClick={() => deleting.mutate()}
        >
          Delete
        </button>
      </div>
      <p>{module.doc}</p>
      {deleting.isError && <ProblemNotice error={deleting.error} what="The module was not deleted" />}
      {module.parameters.length > 0 && (
        <dl className={`facts ${styles.parameters}`}>
          {module.parameters.map((parameter) => (
            <ParameterLine key={parameter.name} parameter={parameter} />
          ))}
        </dl>
      )}
    </article>
  );
}

function ParameterLine({ parameter }: { parameter: Module["parameters"][number] }) {
  return (
    <>
      <dt>
        <code>{parameter.name}</code>
      </dt>
      <dd>
        {parameter.doc} {parameter.required && <span className="badge warn">required</span>}{" "}
        {parameter.secret && <span className="badge">secret</span>}{" "}
        {parameter.default !== undefined && parameter.default !== null && (
          <span className="quiet">default: {parameter.default}</span>
        )}
      </dd>
    </>
  );
}
