const KINDS: Record<string, string> = {
  running: "good",
  paused: "",
  restoring: "warn",
  backing_off: "warn",
  stopped: "bad",
  failed: "bad",
};

export function StateBadge({ state }: { state: string }) {
  return (
    <span className={`badge ${KINDS[state] ?? ""}`} data-state={state}>
      {state.replaceAll("_", " ")}
    </span>
  );
}
