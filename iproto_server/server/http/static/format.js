// Numbers, times and payloads for people.

const grouped = new Intl.NumberFormat("en");
export const count = (value) => (value === null || value === undefined ? "–" : grouped.format(value));

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds <= -0.0005) return `-${duration(-seconds)}`;
  if (seconds < 0.0005) return "0";
  if (seconds < 1) return `${Number((seconds * 1000).toPrecision(2))} ms`;
  if (seconds < 120) return `${Number(seconds.toPrecision(3))} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

export function size(bytes) {
  if (bytes === null || bytes === undefined) return "–";
  let unit = "B";
  for (const next of ["KB", "MB", "GB", "TB"]) {
    if (bytes < 1024) break;
    bytes /= 1024;
    unit = next;
  }
  return `${unit === "B" ? bytes : bytes.toFixed(1)} ${unit}`;
}

export const rate = (value) => (value === null || value === undefined ? "–" : `${value < 10 ? Number(value.toFixed(1)) : Math.round(value)}/s`);
export const time = (seconds) => (seconds === null || seconds === undefined ? "–" : new Date(seconds * 1000).toLocaleString("sv"));
export const plural = (number, word) => `${grouped.format(number)} ${word}${number === 1 ? "" : "s"}`;

const CAUSES = [["releases", "released"], ["timeouts", "too slow"], ["disconnects", "connection lost"]];

// How often a task has failed, and why: "3 (2 released, 1 too slow)".
export function failures(details) {
  const causes = CAUSES.filter(([name]) => details[name] > 0);
  if (!causes.length) return "–";
  const total = causes.reduce((sum, [name]) => sum + details[name], 0);
  return `${count(total)} (${causes.map(([name, text]) => `${count(details[name])} ${text}`).join(", ")})`;
}

export function payload(data, limit) {
  const text = typeof data === "string" ? data : JSON.stringify(data);
  return text.length > limit ? text.slice(0, limit) + "…" : text;
}
