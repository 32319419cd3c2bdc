// Dialogs, which close with Escape.

import { html, useEffect, useRef } from "./preact.js";

export function Dialog({ title, onClose, children }) {
  const element = useRef(null);
  useEffect(() => {
    element.current.showModal();
  }, []);
  return html`<dialog ref=${element} aria-label=${title} onClose=${onClose}><h2>${title}</h2>${children}</dialog>`;
}

export function Confirm({ question, verb, onYes, onClose }) {
  const yes = () => {
    onClose();
    onYes();
  };
  return html`<${Dialog} title=${question} onClose=${onClose}>
    <div class="row">
      <button class="danger" id="confirm" onClick=${yes}>${verb}</button>
      <button onClick=${onClose} autofocus>Cancel</button>
    </div>
  <//>`;
}
