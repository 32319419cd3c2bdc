// The tasks of a queue: the table, and the dialog of one task.

import { html } from "./preact.js";
import { ofTask } from "./api.js";
import { Dialog } from "./dialogs.js";
import { duration, failures, payload, time } from "./format.js";

export const VERBS = { release: "Release", bury: "Bury", delete: "Delete", requeue: "Requeue" };
// The states in which an action changes something.
export const FITS = {
  release: ["taken", "delayed", "buried"],
  bury: ["ready", "taken", "delayed"],
  delete: ["ready", "taken", "delayed", "buried", "done"],
  requeue: ["ready", "taken", "delayed", "buried"],
};
const COUNTERS = ["releases", "timeouts", "disconnects"];

export function TaskDialog({ task, actions, act, onClose }) {
  const facts = [
    ["State", html`<span class="state ${task.state}">${task.state}</span>`],
    ["Created", time(task.created)],
    ["Due", time(task.due)],
    ["Taken", time(task.taken_at)],
    ["Touched", time(task.touched_at)],
    ["Session", task.session ?? "–"],
    ["Failed attempts", failures(task.details)],
    ...Object.entries(task.details)
      .filter(([name]) => !COUNTERS.includes(name))
      .map(([name, value]) => [name, payload(value, 200)]),
  ];
  return html`<${Dialog} title=${"Task " + task.id} onClose=${onClose}>
    <dl class="figures">${facts.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
    <h3>Payload</h3>
    <pre tabindex="0">${typeof task.data === "string" ? task.data : JSON.stringify(task.data, null, 2)}</pre>
    <div class="row bottom">
      ${actions.filter((action) => FITS[action].includes(task.state)).map((action) => html`<button class=${action === "delete" ? "danger" : ""} onClick=${() => act(action)}>${VERBS[action]}</button>`)}
      <button onClick=${onClose}>Close</button>
    </div>
  <//>`;
}

export function Tasks({ queue, tasks, now, chosen, choose, canChoose }) {
  if (!tasks.length) return html`<p class="note">There are no such tasks.</p>`;
  const all = tasks.every((task) => chosen.has(task.id));
  const toggle = (ids) => {
    const next = new Set(chosen);
    for (const id of ids) if (all && ids.length > 1) next.delete(id); else if (ids.length === 1 && next.has(id)) next.delete(id); else next.add(id);
    choose(next);
  };
  const age = (since) => (since === null ? "–" : duration(Math.max(now - since, 0)));
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Tasks">
    <table id="tasks" class="cards">
      <thead>
        <tr>
          ${canChoose && html`<th scope="col"><input type="checkbox" aria-label="All tasks of this page" checked=${all} onChange=${() => toggle(tasks.map((task) => task.id))} /></th>`}
          <th scope="col">Task</th><th scope="col">State</th><th scope="col">Payload</th><th scope="col">Failed attempts</th>
          <th scope="col" class="number">Age</th><th scope="col" class="number">Taken for</th>
        </tr>
      </thead>
      <tbody>
        ${tasks.map(
          (task) => html`<tr key=${task.id} data-id=${task.id}>
            ${canChoose && html`<td class="choice"><input type="checkbox" aria-label=${"Task " + task.id} checked=${chosen.has(task.id)} onChange=${() => toggle([task.id])} /></td>`}
            <th scope="row"><a href=${ofTask(queue, task.id)}>${task.id}</a></th>
            <td data-label="State"><span class="state ${task.state}">${task.state}</span></td>
            <td data-label="Payload" class="data">${payload(task.data, 160)}</td>
            <td data-label="Failed attempts">${failures(task.details)}</td>
            <td data-label="Age" class="number">${age(task.created)}</td>
            <td data-label="Taken for" class="number">${age(task.taken_at)}</td>
          </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}
