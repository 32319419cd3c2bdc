// The page of a queue: its figures, tasks and actions.

import { html, useEffect, useState } from "./preact.js";
import { encode, get, ofQueue, ofTask, post } from "./api.js";
import { Charts, QUEUE_CHARTS } from "./charts.js";
import { Confirm } from "./dialogs.js";
import { count, duration, plural } from "./format.js";
import { usePolled } from "./polling.js";
import { Put } from "./put.js";
import { FITS, TaskDialog, Tasks, VERBS } from "./tasks.js";

const PAGE = 50;
const DONE = { release: "Released", bury: "Buried", delete: "Deleted", requeue: "Requeued" };
// The actions on a queue in each of its states.
const CHANGES = { running: { pause: "Pause", drain: "Drain" }, paused: { resume: "Resume" }, draining: { resume: "Resume" } };
const ABOUT_STATES = { paused: "Consumers keep waiting until it is resumed.", draining: "It refuses new tasks until it is resumed." };

export function QueuePage({ name, task, may, failed }) {
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
  const home = "#/queues/" + encode(name);
  // The task of the address, once it is found.
  const [opened, setOpened] = useState(null);
  useEffect(() => {
    setOpened(null);
    if (task === null) return undefined;
    let isOver = false;
    setMessage("");
    get(ofQueue(name, `/tasks/${encode(task)}`)).then(
      (found) => isOver || setOpened(found),
      (error) => isOver || setMessage(failed(error)),
    );
    return () => {
      isOver = true;
    };
  }, [task]);
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
  const search = (event) => {
    event.preventDefault();
    const id = new FormData(event.target).get("id").trim();
    if (id === task) location.hash = home; // so that the same task is looked for again
    if (id) setTimeout(() => (location.hash = ofTask(name, id)));
  };
  const leave = () => {
    if (task !== null) location.hash = home;
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
    <h2>${name || "(no name)"}</h2>
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
    ${queue.suspicious.length > 0 && html`<p class="problem" id="suspicious">${queue.suspicious.map((task) => `Task ${task.id} has ended ${task.connections} connections of its consumers`).join(", ")}. See release_limit and disconnect_retry.</p>`}
    ${settings.length > 0 && html`<p class="note" id="settings">${settings.map(([option, value]) => `${option}: ${typeof value === "string" ? value : JSON.stringify(value)}`).join(", ")}</p>`}
    <p class=${message ? "message" : ""} role="status" id="message">${message}</p>
    <${Charts} charts=${QUEUE_CHARTS} history=${past} />
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
    ${found && html`<${Tasks} tasks=${found.tasks} now=${now} queue=${name} chosen=${chosen} choose=${setChosen} canChoose=${actions.length > 0} />`}
    <nav class="row" aria-label="Pages of tasks">
      <button disabled=${pages.length === 1} onClick=${() => setPages(pages.slice(0, -1))}>Previous</button>
      <span class="note">Page ${pages.length}</span>
      <button disabled=${!found?.next} onClick=${() => setPages([...pages, found.next])}>Next</button>
    </nav>
    ${opened && html`<${TaskDialog} key=${opened.id} task=${opened} actions=${actions} act=${(action) => { leave(); ask(action, [opened.id]); }} onClose=${leave} />`}
    ${dialog}
  `;
}
