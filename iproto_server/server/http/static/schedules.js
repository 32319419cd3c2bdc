// The schedules: when they are due, how their last put went, and forms to create and remove them.

import { html, useState } from "./preact.js";
import { encode, get, ofSchedule, put, remove } from "./api.js";
import { Confirm, Dialog } from "./dialogs.js";
import { payload, time } from "./format.js";
import { usePolled } from "./polling.js";

const MISSED = ["latest", "all", "none"];

function parsed(form, name, what) {
  const text = form.get(name).trim();
  if (!text) return null;
  try {
    return JSON.parse(text);
  } catch (failure) {
    throw new Error(`${what} no JSON: ${failure.message}`);
  }
}

function ScheduleForm({ schedule, queues, done, onClose }) {
  const [error, setError] = useState("");
  const submit = async (event) => {
    event.preventDefault();
    const form = new FormData(event.target);
    try {
      const definition = {
        ...Object.fromEntries(["queue", "cron", "timezone", "missed"].map((name) => [name, form.get(name).trim()])),
        data: parsed(form, "data", "The payload is"),
        options: parsed(form, "options", "The options are"),
      };
      const name = schedule?.name ?? form.get("name").trim();
      const { next_due: due } = await put(ofSchedule(name), definition);
      onClose();
      done(`The schedule ${name} is next due at ${time(due)}.`);
    } catch (failure) {
      setError(failure.message);
    }
  };
  const title = schedule ? `Schedule ${schedule.name}` : "New schedule";
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <form class="stack" id="schedule" onSubmit=${submit}>
      ${!schedule && html`<label>Name <input name="name" required maxlength="200" /></label>`}
      <label>Queue <input name="queue" list="queue-names" required defaultValue=${schedule?.queue ?? ""} /></label>
      <datalist id="queue-names">${queues.map((queue) => html`<option value=${queue.name} />`)}</datalist>
      <label>Cron expression <input name="cron" required placeholder="30 2 * * *" defaultValue=${schedule?.cron ?? ""} /></label>
      <label>Time zone <input name="timezone" required defaultValue=${schedule?.timezone ?? "UTC"} /></label>
      <label>Missed due times
        <select name="missed">${MISSED.map((each) => html`<option value=${each} selected=${each === (schedule?.missed ?? MISSED[0])}>${each}</option>`)}</select>
      </label>
      <label>Payload, as JSON <textarea name="data" defaultValue=${schedule && schedule.data !== null ? JSON.stringify(schedule.data) : ""}></textarea></label>
      <label>Options of each put, as JSON <input name="options" defaultValue=${schedule && Object.keys(schedule.options).length ? JSON.stringify(schedule.options) : ""} /></label>
      <div class="row bottom"><p class="problem" role="alert">${error}</p><button class="main">Save</button><button type="button" onClick=${onClose}>Cancel</button></div>
    </form>
  <//>`;
}

function Schedules({ schedules, canChange, change, unschedule }) {
  if (!schedules.length) return html`<p class="note">There are no schedules.</p>`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Schedules">
    <table id="schedules" class="cards">
      <thead>
        <tr>
          <th scope="col">Schedule</th><th scope="col">Queue</th><th scope="col">Cron expression</th><th scope="col">Missed</th>
          <th scope="col">Next due</th><th scope="col">Last put</th><th scope="col">Task</th><th scope="col">Payload</th>
          ${canChange && html`<th scope="col"><span class="note">Actions</span></th>`}
        </tr>
      </thead>
      <tbody>
        ${schedules.map(
          (schedule) => html`<tr key=${schedule.name} data-name=${schedule.name}>
            <th scope="row">${schedule.name}${schedule.last_error && html`<br /><span class="problem">${schedule.last_error}</span>`}</th>
            <td data-label="Queue"><a href=${"#/queues/" + encode(schedule.queue)}>${schedule.queue}</a></td>
            <td data-label="Cron expression">${schedule.cron}<br /><span class="note">${schedule.timezone}</span></td>
            <td data-label="Missed">${schedule.missed}</td>
            <td data-label="Next due">${time(schedule.next_due)}</td>
            <td data-label="Last put">${time(schedule.last_put)}</td>
            <td data-label="Task">${schedule.last_task ?? "–"}</td>
            <td class="data" data-label="Payload">${payload(schedule.data, 160)}</td>
            ${canChange && html`<td class="wide"><div class="row">
              <button data-action="change" onClick=${() => change(schedule)}>Change</button>
              <button class="danger" data-action="remove" onClick=${() => unschedule(schedule.name)}>Remove</button>
            </div></td>`}
          </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

export function SchedulesPage({ may, failed }) {
  const [changes, setChanges] = useState(0);
  const [dialog, setDialog] = useState(null);
  const [message, setMessage] = useState("");
  const load = () => Promise.all([get("schedules"), get("queues")]);
  const [found, problem] = usePolled(load, 5, failed, changes);
  const close = () => setDialog(null);
  const changed = (text) => {
    setMessage(text);
    setChanges((number) => number + 1);
  };
  if (found === null) return html`<p class=${problem ? "problem" : "note"} role="alert">${problem || "…"}</p>`;
  const [{ schedules }, { queues }] = found;
  const canChange = may.includes("schedule") && may.includes("unschedule");
  const targets = queues.filter((queue) => queue.actions.includes("put"));
  const edit = (schedule) =>
    setDialog(html`<${ScheduleForm} key=${schedule?.name} schedule=${schedule} queues=${targets} done=${changed} onClose=${close} />`);
  const unschedule = (name) => {
    const work = async () => {
      try {
        await remove(ofSchedule(name));
        changed(`Removed the schedule ${name}.`);
      } catch (error) {
        setMessage(failed(error));
      }
    };
    setDialog(html`<${Confirm} question=${`Remove the schedule ${name}?`} verb="Remove" onYes=${work} onClose=${close} />`);
  };
  return html`
    <h2>Schedules</h2>
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    <p class="note">Times are those of this browser; expressions count in their own time zone.</p>
    ${canChange && html`<div class="row"><button id="new" onClick=${() => edit(null)}>New schedule</button></div>`}
    <p class=${message ? "message" : ""} role="status" id="message">${message}</p>
    <${Schedules} schedules=${schedules} canChange=${canChange} change=${edit} unschedule=${unschedule} />
    ${dialog}
  `;
}
