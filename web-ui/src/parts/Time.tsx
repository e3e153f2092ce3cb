import { formatTime } from "../time";
import { useZone } from "./zone";

export function Time({ millis }: { millis: number }) {
  const [zone] = useZone();
  return <span className="mono">{formatTime(millis, zone)}</span>;
}
