// The form that puts a task.

import { html, useState } from "./preact.js";
import { ofQueue, post } from "./api.js";
import { Dialog } from "./dialogs.js";

// The options of a put: their names for people, units, and how their text becomes a value.
const SECONDS = { unit: "seconds", type: "number", min: "0", step: "any" };
const FIELDS = {
  delay: { ...SECONDS, label: "Delay", hint: "until the task is ready" },
  ttl: { ...SECONDS, label: "Time to live", hint: "until an unfinished task is deleted" },
  ttr: { ...SECONDS, label: "Time to run", hint: "until a taken task is ready again" },
  pri: { label: "Priority", type: "number", step: "1", unit: "whole number" },
  utube: { label: "Sub-queue", unit: "text" },
  release_limit: { label: "Attempts", type: "number", min: "0", step: "1", unit: "failed attempts; 0: no limit" },
  release_limit_policy: { label: "After the last attempt", choices: { BURY: "bury", DELETE: "delete", DLQ: "move to the dead letters" } },
  retry: { label: "Retries", isJson: true, unit: "JSON", placeholder: '{"delay": 1, "factor": 2, "max_delay": 3600}' },
  unique_key: { label: "Unique key", unit: "text or number", isNumberOrText: true },
  unique_for: { ...SECONDS, label: "Key is kept", hint: "after the task is gone" },
};
const ORDER = Object.keys(FIELDS);
const place = (option) => (ORDER.includes(option) ? ORDER.indexOf(option) : ORDER.length);

function valueOf(option, text) {
  const field = FIELDS[option] ?? { isNumberOrText: true };
  if (field.type === "number") return Number(text);
  if (!field.isJson && !field.isNumberOrText) return text;
  try {
    return JSON.parse(text);
  } catch (failure) {
    if (field.isNumberOrText) return text;
    throw new Error(`The option “${field.label}” is no JSON: ${failure.message}`);
  }
}

function Field({ option }) {
  const { label = option, unit, hint, choices, type = "text", min, step, placeholder } = FIELDS[option] ?? {};
  const about = [unit, hint].filter(Boolean).join(" ");
  return html`<label>
    <span>${label}${about && html` <span class="note">${about}</span>`}</span>
    ${choices
      ? html`<select name=${option}><option value="">as the queue has it</option>${Object.entries(choices).map(([value, text]) => html`<option value=${value}>${text}</option>`)}</select>`
      : html`<input name=${option} type=${type} min=${min} step=${step} placeholder=${placeholder} />`}
  </label>`;
}

export function Put({ name, options, done, onClose }) {
  const [error, setError] = useState("");
  const submit = async (event) => {
    event.preventDefault();
    const form = new FormData(event.target);
    try {
      let data;
      try {
        data = JSON.parse(form.get("data"));
      } catch (failure) {
        throw new Error(`The payload is no JSON: ${failure.message}`);
      }
      const given = {};
      for (const option of options) {
        const text = form.get(option).trim();
        if (text) given[option] = valueOf(option, text);
      }
      const task = await post(ofQueue(name, "/put"), { data, options: given });
      onClose();
      done(`Put the task ${task.id}.`);
    } catch (failure) {
      setError(failure.message);
    }
  };
  return html`<${Dialog} title="Put a task" onClose=${onClose}>
    <form class="stack" onSubmit=${submit}>
      <label><span>Payload <span class="note">JSON, such as {"to": "ann@example.com"}</span></span> <textarea name="data" required></textarea></label>
      <div class="fields">${[...options].sort((one, other) => place(one) - place(other)).map((option) => html`<${Field} key=${option} option=${option} />`)}</div>
      <div class="row bottom">
        <p class="problem" role="alert">${error}</p>
        <button class="main">Put</button><button type="button" onClick=${onClose}>Cancel</button>
      </div>
    </form>
  <//>`;
}
