// The page of a queue: its figures, tasks and actions.

import { html, useState } from "./preact.js";
import { encode, get, ofQueue, post } from "./api.js";
import { Chart, QUEUE_CHARTS } from "./charts.js";
import { Confirm, Dialog } from "./dialogs.js";
import { count, duration, payload, plural, time } from "./format.js";
import { usePolled } from "./polling.js";

const PAGE = 50;
const VERBS = { release: "Release", bury: "Bury", delete: "Delete", requeue: "Requeue" };
const DONE = { release: "Released", bury: "Buried", delete: "Deleted", requeue: "Requeued" };
// The actions on a queue in each of its states.
const CHANGES = { running: { pause: "Pause", drain: "Drain" }, paused: { resume: "Resume" }, draining: { resume: "Resume" } };
const ABOUT_STATES = { paused: "Takes find nothing until it is resumed.", draining: "It takes no new tasks until it is resumed." };
// The states in which an action changes something.
const FITS = {
  release: ["taken", "delayed", "buried"],
  bury: ["ready", "taken", "delayed"],
  delete: ["ready", "taken", "delayed", "buried", "done"],
  requeue: ["ready", "taken", "delayed", "buried"],
};

function TaskDialog({ task, actions, act, onClose }) {
  const facts = [
    ["State", html`<span class="state ${task.state}">${task.state}</span>`],
    ["Created", time(task.created)],
    ["Due", time(task.due)],
    ["Taken", time(task.taken_at)],
    ["Session", task.session ?? "–"],
    ...Object.entries(task.details).map(([name, value]) => [name, payload(value, 200)]),
  ];
  return html`<${Dialog} title=${"Task " + task.id} onClose=${onClose}>
    <dl class="figures">${facts.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
    <h3>Payload</h3>
    <pre tabindex="0">${typeof task.data === "string" ? task.data : JSON.stringify(task.data, null, 2)}</pre>
    <div class="row">
      ${actions.filter((action) => FITS[action].includes(task.state)).map((action) => html`<button class=${action === "delete" ? "danger" : ""} onClick=${() => act(action)}>${VERBS[action]}</button>`)}
      <button onClick=${onClose}>Close</button>
    </div>
  <//>`;
}

function jsonOr(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function Put({ name, options, done, onClose }) {
  const [error, setError] = useState("");
  const submit = async (event) => {
    event.preventDefault();
    const form = new FormData(event.target);
    let data;
    try {
      data = JSON.parse(form.get("data"));
    } catch (failure) {
      return setError(`The payload is no JSON: ${failure.message}`);
    }
    const given = {};
    for (const option of options) {
      const text = form.get(option).trim();
      if (text) given[option] = jsonOr(text);
    }
    try {
      const task = await post(ofQueue(name, "/put"), { data, options: given });
      onClose();
      done(`Put the task ${task.id}.`);
    } catch (failure) {
      setError(failure.message);
    }
  };
  return html`<${Dialog} title="Put a task" onClose=${onClose}>
    <form class="stack" onSubmit=${submit}>
      <label>Payload, as JSON <textarea name="data" required></textarea></label>
      ${options.map((option) => html`<label>${option} <input name=${option} /></label>`)}
      <p class="problem" role="alert">${error}</p>
      <div class="row"><button class="main">Put</button><button type="button" onClick=${onClose}>Cancel</button></div>
    </form>
  <//>`;
}

function Tasks({ tasks, now, chosen, choose, canChoose, open }) {
  if (!tasks.length) return html`<p class="note">There are no such tasks.</p>`;
  const all = tasks.every((task) => chosen.has(task.id));
  const toggle = (ids) => {
    const next = new Set(chosen);
    for (const id of ids) if (all && ids.length > 1) next.delete(id); else if (ids.length === 1 && next.has(id)) next.delete(id); else next.add(id);
    choose(next);
  };
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Tasks">
    <table id="tasks">
      <thead>
        <tr>
          ${canChoose && html`<th scope="col"><input type="checkbox" aria-label="All tasks of this page" checked=${all} onChange=${() => toggle(tasks.map((task) => task.id))} /></th>`}
          <th scope="col">Task</th><th scope="col">State</th><th scope="col">Payload</th>
          <th scope="col" class="number">Age</th><th scope="col" class="number">Taken for</th>
        </tr>
      </thead>
      <tbody>
        ${tasks.map(
          (task) => html`<tr key=${task.id} data-id=${task.id}>
            ${canChoose && html`<td><input type="checkbox" aria-label=${"Task " + task.id} checked=${chosen.has(task.id)} onChange=${() => toggle([task.id])} /></td>`}
            <th scope="row"><a href="#" onClick=${(event) => { event.preventDefault(); open(task); }}>${task.id}</a></th>
            <td><span class="state ${task.state}">${task.state}</span></td>
            <td class="data">${payload(task.data, 160)}</td>
            <td class="number">${task.created === null ? "–" : duration(Math.max(now - task.created, 0))}</td>
            <td class="number">${task.taken_at === null ? "–" : duration(Math.max(now - task.taken_at, 0))}</td>
          </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

export function QueuePage({ name, may, failed }) {
  const [state, setState] = useState("");
  const [pages, setPages] = useState([null]);
  const [changes, setChanges] = useState(0);
  const [chosen, setChosen] = useState(new Set());
  const [dialog, setDialog] = useState(null);
  const [message, setMessage] = useState("");
  const after = pages[pages.length - 1];
  const [queue, problem] = usePolled(() => get(ofQueue(name)), 2, failed, changes);
  const [past] = usePolled(() => get("history", { queue: name }), 10, failed);
  const [found, tasksProblem] = usePolled(
    () => get(ofQueue(name, "/tasks"), { state, limit: PAGE, after }),
    5,
    failed,
    `${state} ${after} ${changes}`,
  );
  const now = Date.now() / 1000;
  const changed = (text) => {
    setMessage(text);
    setChosen(new Set());
    setChanges((number) => number + 1);
  };
  const show = (next) => {
    setState(next);
    setPages([null]);
    setChosen(new Set());
  };
  const close = () => setDialog(null);
  const run = async (work) => {
    try {
      changed(await work());
    } catch (error) {
      setMessage(failed(error));
    }
  };
  const repair = (action, ids) =>
    run(async () => {
      const { tasks } = await post(ofQueue(name, `/${action}`), { ids });
      return `${DONE[action]} ${plural(tasks.length, "task")}.`;
    });
  const ask = (action, ids) => {
    const question = ids.length === 1 ? `${VERBS[action]} the task ${ids[0]}?` : `${VERBS[action]} ${plural(ids.length, "task")}?`;
    if (ids.length === 1 && action === "release") repair(action, ids);
    else setDialog(html`<${Confirm} key=${question} question=${question} verb=${VERBS[action]} onYes=${() => repair(action, ids)} onClose=${close} />`);
  };
  const change = (action) =>
    run(async () => {
      const { state } = await post(ofQueue(name, `/${action}`), {});
      return `The queue is ${state}.`;
    });
  const kick = (event) => {
    event.preventDefault();
    const number = Number(new FormData(event.target).get("count"));
    const work = () =>
      run(async () => {
        const { kicked } = await post(ofQueue(name, "/kick"), { count: number });
        return `Kicked ${plural(kicked, "task")}.`;
      });
    if (number === 1) work();
    else setDialog(html`<${Confirm} question=${`Kick up to ${plural(number, "task")}?`} verb="Kick" onYes=${work} onClose=${close} />`);
  };
  const search = async (event) => {
    event.preventDefault();
    const id = new FormData(event.target).get("id").trim();
    if (!id) return;
    try {
      open(await get(ofQueue(name, `/tasks/${encodeURIComponent(id)}`)));
    } catch (error) {
      setMessage(failed(error));
    }
  };
  const open = (task) => {
    setMessage("");
    setDialog(html`<${TaskDialog} task=${task} actions=${actions} act=${(action) => { close(); setTimeout(() => ask(action, [task.id])); }} onClose=${close} />`);
  };

  if (queue === null) return html`<p class=${problem ? "problem" : "note"} role="alert">${problem || "…"}</p>`;
  const actions = Object.keys(VERBS).filter((action) => queue.actions.includes(action) && may.includes(action));
  const canPut = queue.actions.includes("put") && may.includes("put");
  const canKick = queue.actions.includes("kick") && may.includes("kick");
  const changesOfState = Object.entries(CHANGES[queue.state]).filter(([action]) => queue.actions.includes(action) && may.includes(action));
  const settings = Object.entries(queue.settings);
  const selected = (found?.tasks ?? []).filter((task) => chosen.has(task.id));
  const fits = (action) => selected.length > 0 && selected.every((task) => FITS[action].includes(task.state));
  return html`
    <h2>${name}</h2>
    <p class="note">${queue.dialect === queue.kind ? queue.dialect : `${queue.dialect}, ${queue.kind}`}${queue.dead_letters_of && html`, dead letters of <a href=${"#/queues/" + encode(queue.dead_letters_of)}>${queue.dead_letters_of}</a>`}</p>
    ${queue.state !== "running" && html`<p class="problem" id="state-of-queue">This queue is ${queue.state}. ${ABOUT_STATES[queue.state]}</p>`}
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    <dl class="figures" id="counts">
      ${Object.entries(queue.tasks).map(([each, number]) => html`<div><dt><span class="state ${each}">${each}</span></dt><dd data-state=${each}>${count(number)}</dd></div>`)}
      <div><dt>Oldest ready task</dt><dd>${duration(queue.oldest_ready)}</dd></div>
      <div><dt>Waiting consumers</dt><dd>${count(queue.waiting)}</dd></div>
    </dl>
    <div class="row">
      ${canPut && html`<button id="put" onClick=${() => setDialog(html`<${Put} name=${name} options=${queue.options} done=${changed} onClose=${close} />`)}>Put a task</button>`}
      ${canKick && html`<form class="row" id="kick" onSubmit=${kick}>
        <label>Kick <input name="count" type="number" min="1" max="10000" value="1" required aria-label="Number of tasks to kick" /></label>
        <button>Kick</button>
      </form>`}
      ${changesOfState.map(([action, verb]) => html`<button data-change=${action} onClick=${() => change(action)}>${verb}</button>`)}
    </div>
    ${settings.length > 0 && html`<p class="note" id="settings">${settings.map(([option, value]) => `${option}: ${typeof value === "string" ? value : JSON.stringify(value)}`).join(", ")}</p>`}
    <p class=${message ? "message" : ""} role="status" id="message">${message}</p>
    <h2>Tasks</h2>
    <div class="row">
      <label>State
        <select id="state" value=${state} onChange=${(event) => show(event.target.value)}>
          <option value="">all</option>
          ${Object.keys(queue.tasks).map((each) => html`<option value=${each}>${each}</option>`)}
        </select>
      </label>
      <form class="row" id="search" onSubmit=${search}><label>Task <input name="id" placeholder="id" size="20" /></label><button>Find</button></form>
    </div>
    ${actions.length > 0 && html`<div class="row" id="actions">
      ${actions.map((action) => html`<button class=${action === "delete" ? "danger" : ""} data-action=${action} disabled=${!fits(action)} onClick=${() => ask(action, selected.map((task) => task.id))}>${VERBS[action]} ${selected.length ? plural(selected.length, "task") : "selected"}</button>`)}
    </div>`}
    ${tasksProblem && html`<p class="problem" role="alert">${tasksProblem}</p>`}
    ${found && html`<${Tasks} tasks=${found.tasks} now=${now} chosen=${chosen} choose=${setChosen} canChoose=${actions.length > 0} open=${open} />`}
    <nav class="row" aria-label="Pages of tasks">
      <button disabled=${pages.length === 1} onClick=${() => setPages(pages.slice(0, -1))}>Previous</button>
      <span class="note">Page ${pages.length}</span>
      <button disabled=${!found?.next} onClick=${() => setPages([...pages, found.next])}>Next</button>
    </nav>
    <h2>Last hour</h2>
    ${past && html`<div class="charts">${QUEUE_CHARTS.map((chart) => html`<${Chart} key=${chart.title} chart=${chart} history=${past} />`)}</div>`}
    ${dialog}
  `;
}
