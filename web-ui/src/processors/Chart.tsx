// One number of one key over its windows. The table beside it says the same in text, so the picture is only a picture.
import { useEffect, useMemo, useRef, useState } from "react";
import type uPlot from "uplot";
import { numbersOf } from "../json/text";
import type { Zone } from "../time";
import styles from "./Chart.module.css";
import type { WindowResult } from "./results";

const HEIGHT = 240;

interface ChartProps {
  chosen: string;
  results: WindowResult[];
  field: string | undefined;
  zone: Zone;
  onField: (field: string) => void;
  onClose: () => void;
}

export function Chart({ chosen, results, field, zone, onField, onClose }: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const [Plot, setPlot] = useState<typeof uPlot | null>(null);
  const [plot, setMade] = useState<uPlot | null>(null);
  const windows = useMemo(
    () => results.filter(({ key }) => key === chosen).sort((a, b) => a.start - b.start || a.end - b.end),
    [results, chosen],
  );
  const fields = [...numbersOf(windows.at(-1)?.value ?? null).keys()];
  const shown = field ?? fields[0];
  const data = useMemo<uPlot.AlignedData>(
    () => [
      windows.map(({ start }) => start / 1000),
      windows.map(({ value }) => (shown === undefined ? null : (numbersOf(value).get(shown) ?? null))),
    ],
    [windows, shown],
  );

  useEffect(() => {
    let isGone = false;
    void import("./plot").then(({ default: loaded }) => {
      if (!isGone) setPlot(() => loaded);
    });
    return () => {
      isGone = true;
    };
  }, []);

  useEffect(() => {
    const element = place.current;
    if (Plot === null || element === null || shown === undefined) return;
    const color = getComputedStyle(element).color;
    const accent = getComputedStyle(document.documentElement).getPropertyValue("--accent");
    const axis = { stroke: color, grid: { stroke: `color-mix(in srgb, ${color} 15%, transparent)` } };
    const made = new Plot(
      {
        width: element.clientWidth,
        height: HEIGHT,
        tzDate: (seconds) => (zone === "utc" ? Plot.tzDate(new Date(seconds * 1000), "Etc/UTC") : new Date(seconds * 1000)),
        axes: [axis, axis],
        series: [{}, { label: shown, stroke: accent, width: 2, points: { show: true } }],
      },
      [[], []],
      element,
    );
    setMade(made);
    const observer = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: HEIGHT }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      setMade(null);
    };
  }, [Plot, shown, zone]);

  useEffect(() => plot?.setData(data), [plot, data]);

  return (
    <figure className={styles.chart}>
      <figcaption className="row center">
        <span>
          <code>{chosen}</code> over its windows
        </span>
        {fields.length > 0 && (
          <label>
            Number{" "}
            <select value={shown} onChange={(event) => onField(event.target.value)}>
              {fields.map((name) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          </label>
        )}
        <button type="button" className="push" aria-label="Close the chart" onClick={onClose}>
          ✕
        </button>
      </figcaption>
      {shown === undefined && <p className="quiet">The value of this key has no number at its top.</p>}
      <div ref={place} className={styles.plot} role="img" aria-label={`${shown ?? "nothing"} of ${chosen} by window`} />
    </figure>
  );
}
