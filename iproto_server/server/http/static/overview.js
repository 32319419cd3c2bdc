// The overview: the server, its queues, the last hour.

import { html, useRef, useState } from "./preact.js";
import { encode, get, post } from "./api.js";
import { Charts, SERVER_CHARTS } from "./charts.js";
import { count, duration, rate, size } from "./format.js";
import { usePolled } from "./polling.js";

const STATES = ["ready", "taken", "delayed", "buried", "done"];

async function load(last) {
  const [status, { queues }] = await Promise.all([get("status"), get("queues")]);
  const rates = {};
  if (last && status.time > last.status.time) {
    const before = new Map(last.queues.map((queue) => [queue.name, queue.calls]));
    for (const queue of queues) {
      const calls = before.get(queue.name);
      if (!calls) continue;
      const perSecond = (call) => (queue.calls[call] - calls[call]) / (status.time - last.status.time);
      rates[queue.name] = { put: perSecond("put"), take: perSecond("take") };
    }
  }
  return { status, queues, rates };
}

function Figures({ status, queues }) {
  const waiting = queues.reduce((sum, queue) => sum + queue.waiting, 0);
  const oldest = Math.max(...queues.map((queue) => queue.oldest_ready ?? -1));
  const { wal, snapshots } = status;
  return html`<dl class="figures">
    <div><dt>Connections</dt><dd>${count(status.connections.current)}</dd></div>
    <div><dt>Requests</dt><dd>${rate(status.requests.per_second)}</dd></div>
    <div><dt>Oldest ready task</dt><dd>${oldest < 0 ? "–" : duration(oldest)}</dd></div>
    <div><dt>Waiting consumers</dt><dd>${count(waiting)}</dd></div>
    <div><dt>Loop latency</dt><dd>${duration(status.loop.latency)}</dd></div>
    <div><dt>Memory</dt><dd>${size(status.memory.process)}</dd></div>
    <div><dt>Log since snapshot</dt><dd>${size(wal.since_snapshot)}</dd></div>
    <div><dt>Snapshots</dt><dd>${count(snapshots.taken)}${snapshots.is_running ? " …" : ""}</dd></div>
    <div><dt>Up for</dt><dd>${duration(status.uptime)}</dd></div>
  </dl>`;
}

function problems({ read_only: isReadOnly, wal, snapshots }) {
  return [
    isReadOnly && "The server is read-only.",
    wal.failures > 0 && `${count(wal.failures)} writes to the log failed: see the server's log.`,
    snapshots.failed > 0 && `${count(snapshots.failed)} snapshots failed: see the server's log.`,
  ].filter(Boolean);
}

function Queues({ queues, rates }) {
  if (!queues.length) return html`<p class="note">There are no queues.</p>`;
  const states = STATES.filter((state) => queues.some((queue) => state in queue.tasks));
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Queues">
    <table id="queues" class="cards">
      <thead>
        <tr>
          <th scope="col">Queue</th>
          ${states.map((state) => html`<th scope="col" class="number"><span class="state ${state}">${state}</span></th>`)}
          <th scope="col" class="number">put</th><th scope="col" class="number">take</th>
          <th scope="col" class="number">oldest</th><th scope="col" class="number">waiting</th>
        </tr>
      </thead>
      <tbody>
        ${queues.map(
          (queue) => html`<tr key=${queue.name}>
            <th scope="row"><a href=${"#/queues/" + encode(queue.name)}>${queue.name || "(no name)"}</a>${queue.state !== "running" && html` <span class="note">${queue.state}</span>`}</th>
            ${states.map((state) => html`<td class="number" data-state=${state} data-label=${state}>${count(queue.tasks[state])}</td>`)}
            <td class="number" data-label="put">${rate(rates[queue.name]?.put)}</td>
            <td class="number" data-label="take">${rate(rates[queue.name]?.take)}</td>
            <td class="number" data-label="oldest">${duration(queue.oldest_ready)}</td>
            <td class="number" data-label="waiting">${count(queue.waiting)}</td>
          </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

export function Overview({ may, failed }) {
  const last = useRef(null);
  const [now, problem] = usePolled(async () => (last.current = await load(last.current)), 2, failed);
  const [past] = usePolled(() => get("history"), 10, failed);
  const [message, setMessage] = useState("");
  const snapshot = async () => {
    setMessage("Taking a snapshot …");
    try {
      await post("snapshot");
      setMessage("The snapshot is on disk.");
    } catch (error) {
      setMessage(failed(error));
    }
  };
  if (now === null) return html`<p class=${problem ? "problem" : "note"}>${problem || "…"}</p>`;
  return html`
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    ${problems(now.status).map((text) => html`<p class="problem">${text}</p>`)}
    <h2>Server</h2>
    <${Figures} status=${now.status} queues=${now.queues} />
    ${may.includes("snapshot") && html`<div class="row"><button id="snapshot" onClick=${snapshot}>Snapshot now</button></div>`}
    ${message && html`<p class="message" role="status">${message}</p>`}
    <${Charts} charts=${SERVER_CHARTS} history=${past} />
    <h2>Queues</h2>
    <${Queues} queues=${now.queues} rates=${now.rates} />
    ${now.queues.length >= 1000 && html`<p class="note">The first 1000 queues are shown.</p>`}
  `;
}
