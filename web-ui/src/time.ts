// Times as people read them: always with milliseconds, hours from 00 to 23, and the zone said.

export type Zone = "utc" | "local";

const two = (number: number) => String(number).padStart(2, "0");
const three = (number: number) => String(number).padStart(3, "0");

/** What is past what a date can hold is shown as its number. */
const MILLIS_MAX = 8_640_000_000_000_000;

function parts(millis: number, zone: Zone): [date: string, time: string, offset: string] {
  // The local time is the UTC time of a moment that lies the zone's offset later.
  const offsetMinutes = zone === "utc" ? 0 : -new Date(millis).getTimezoneOffset();
  const date = new Date(millis + offsetMinutes * 60_000);
  const year = date.getUTCFullYear();
  const shownYear = year >= 0 && year <= 9999 ? String(year).padStart(4, "0") : String(year);
  const minutes = Math.abs(offsetMinutes);
  return [
    `${shownYear}-${two(date.getUTCMonth() + 1)}-${two(date.getUTCDate())}`,
    `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}:${two(date.getUTCSeconds())}.${three(date.getUTCMilliseconds())}`,
    zone === "utc" ? "Z" : `${offsetMinutes < 0 ? "-" : "+"}${two(Math.trunc(minutes / 60))}:${two(minutes % 60)}`,
  ];
}

/** As in `2001-01-14 21:55:00.250Z` or `2001-01-14 22:55:00.250+01:00`. */
export function formatTime(millis: number, zone: Zone): string {
  if (!(Math.abs(millis) < MILLIS_MAX)) return `${millis} ms`;
  const [date, time, offset] = parts(millis, zone);
  return `${date} ${time}${offset}`;
}

/** What a date and time field holds, as in `2001-01-14T21:55:00.250`. */
export function fieldOfTime(millis: number, zone: Zone): string {
  const [date, time] = parts(millis, zone);
  return `${date}T${time}`;
}

/** Milliseconds since 1970 of what a date and time field holds, read in the zone; null if it is no time. */
export function timeOfField(text: string, zone: Zone): number | null {
  const millis = Date.parse(zone === "utc" ? `${text}Z` : text);
  return /^\d{4}-\d\d-\d\dT/.test(text) && Number.isFinite(millis) ? millis : null;
}

const UNITS: [name: string, millis: number][] = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1000],
  ["ms", 1],
];

/** As in `1 h` or `90 min`: the largest unit in which it is whole. */
export function formatDuration(millis: number): string {
  const unit = UNITS.find(([, size]) => millis >= size && millis % size === 0);
  return unit === undefined ? `${millis} ms` : `${millis / unit[1]} ${unit[0]}`;
}

const NUMBER = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

export function formatCount(number: number | null): string {
  return number === null ? "–" : NUMBER.format(number);
}

export function formatBytes(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  return bytes < 1 << 20 ? `${(bytes / 1024).toFixed(1)} KiB` : `${(bytes / (1 << 20)).toFixed(1)} MiB`;
}
