// Charts of the last hour.

import { html, useEffect, useRef, useState } from "./preact.js";
import uPlot from "./uplot.js";
import { duration } from "./format.js";

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 2 });
const number = (value) => (value === null || value === undefined ? "–" : short.format(value));
const clock = (seconds, step) => new Date(seconds * 1000).toTimeString().slice(0, step < 60 ? 8 : 5);
const HEIGHT = 150;
const UNITS = { number, seconds: (value) => (value === null || value === undefined ? "–" : duration(value)) };

function options(chart, width) {
  const show = UNITS[chart.unit ?? "number"];
  const axis = { stroke: color("--faint"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line") } };
  return {
    width,
    height: HEIGHT,
    padding: [12, 30, 0, 0],
    scales: { y: { range: (_, low, high) => [0, Math.max(high ?? 0, chart.least ?? 1) * 1.08] } },
    axes: [{ ...axis, space: 70, size: 32, values: (_, marks, ...[, , step]) => marks.map((mark) => clock(mark, step)) }, { ...axis, size: 62, values: (_, marks) => marks.map(show) }],
    series: [
      { value: "{HH}:{mm}:{ss}" },
      ...chart.lines.map(([label, , tint]) => ({ label, stroke: color(`--${tint}`), width: 2, value: (_, value) => show(value) })),
    ],
  };
}

function Chart({ chart, history }) {
  const place = useRef(null);
  const plot = useRef(null);
  const data = [history.times, ...chart.lines.map(([, name]) => history.series[name] ?? history.times.map(() => null))];
  const isEmpty = !data.slice(1).some((values) => values.some((value) => value !== null));
  const newest = useRef(data);
  newest.current = data;

  useEffect(() => {
    const draw = () => {
      plot.current?.destroy();
      plot.current = new uPlot(options(chart, place.current.clientWidth), newest.current, place.current);
    };
    draw();
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", draw);
    const watch = new ResizeObserver(() => {
      const width = place.current.clientWidth;
      if (width && width !== plot.current.width) plot.current.setSize({ width, height: HEIGHT });
    });
    watch.observe(place.current);
    return () => {
      dark.removeEventListener("change", draw);
      watch.disconnect();
      plot.current.destroy();
      plot.current = null;
    };
  }, [chart]);
  useEffect(() => plot.current?.setData(data), [history]);

  return html`<section class="card" aria-label=${chart.title}><h3>${chart.title}</h3><div ref=${place} hidden=${isEmpty}></div>${isEmpty && html`<p class="note">${chart.empty ?? "No values in the last hour."}</p>`}</section>`;
}

const FOLDED = "charts-folded";
const isNarrow = () => innerWidth < 700;

// The charts under a heading that shows and hides them; the browser remembers which.
export function Charts({ charts, history }) {
  const [isOpen, setOpen] = useState(() => (localStorage.getItem(FOLDED) ?? String(isNarrow())) === "false");
  const toggled = (event) => {
    const { open } = event.currentTarget;
    if (open === isOpen) return;
    localStorage.setItem(FOLDED, String(!open));
    setOpen(open);
  };
  return html`<details class="fold" id="charts" open=${isOpen} onToggle=${toggled}>
    <summary><h2>Last hour</h2></summary>
    ${isOpen && history && html`<div class="charts">${charts.map((chart) => html`<${Chart} key=${chart.title} chart=${chart} history=${history} />`)}</div>`}
  </details>`;
}

const DEPTH = {
  title: "Tasks by state",
  lines: ["ready", "taken", "delayed", "buried"].map((state) => [state, state, state]),
};
const RATES = {
  title: "Calls per second",
  lines: [["put", "put_rate", "ready"], ["take", "take_rate", "taken"], ["ack", "ack_rate", "done"]],
};
const AGE = { title: "Oldest ready task", empty: "No task was ready in the last hour.", unit: "seconds", lines: [["age", "oldest_ready", "ready"]] };

export const SERVER_CHARTS = [
  DEPTH,
  RATES,
  AGE,
  { title: "Event-loop latency", unit: "seconds", least: 0.001, lines: [["latency", "loop_latency", "delayed"]] },
];
export const QUEUE_CHARTS = [
  DEPTH,
  RATES,
  AGE,
  {
    title: "Wait for a consumer, and work",
    empty: "No task was taken in the last hour.",
    unit: "seconds",
    least: 0.001,
    lines: [["wait", "wait_mean", "ready"], ["wait, 95 %", "wait_p95", "delayed"], ["work", "service_mean", "taken"], ["work, 95 %", "service_p95", "buried"]],
  },
];
