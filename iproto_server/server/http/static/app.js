// The dashboard: login, overview, the schedules (#/schedules), a page for each queue (#/queues/NAME), and a dialog for
// each task (#/queues/NAME/tasks/ID).

import { html, render, useCallback, useEffect, useState } from "./preact.js";
import { get, post } from "./api.js";
import { Overview } from "./overview.js";
import { QueuePage } from "./queue.js";
import { SchedulesPage } from "./schedules.js";

const PRODUCT = "iproto-server";
const TOKEN = "#token=";

function Login({ onLogin, note }) {
  const [error, setError] = useState(note);
  const [isBusy, setBusy] = useState(false);
  const submit = async (event) => {
    event.preventDefault();
    const form = new FormData(event.target);
    setBusy(true);
    try {
      onLogin(await post("login", { user: form.get("user"), password: form.get("password") }));
    } catch (failure) {
      setError(failure.message);
      setBusy(false);
    }
  };
  return html`<main>
    <h2>Log in</h2>
    <form class="stack" onSubmit=${submit}>
      <label>User <input name="user" autocomplete="username" required autofocus /></label>
      <label>Password <input name="password" type="password" autocomplete="current-password" required /></label>
      <button class="main" disabled=${isBusy}>Log in</button>
      <p role="alert" class="problem">${error}</p>
    </form>
    <p class="note">The users are those of the database. If none of them has a password, the server's log has a link.</p>
  </main>`;
}

function route() {
  const [, page, name, part, id] = location.hash.split("/");
  if (page === "schedules") return { page, queue: null, task: null };
  const queue = page === "queues" && name !== undefined ? unescapeName(name) : null;
  return { page: "queues", queue, task: queue !== null && part === "tasks" && id ? unescapeName(id) : null };
}

function unescapeName(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    // Bytes that are no UTF-8.
    return text.replace(/((?:%[0-9A-F]{2})+)/gi, (bytes) => {
      try {
        return decodeURIComponent(bytes);
      } catch {
        return bytes.replace(/%(..)/g, (_, code) => String.fromCharCode(parseInt(code, 16) + (code >= "80" ? 0xdc00 : 0)));
      }
    });
  }
}

function App() {
  const [session, setSession] = useState(undefined);
  const [note, setNote] = useState("");
  const [{ page, queue, task }, setRoute] = useState(route);

  const instance = session?.instance ?? location.host;

  useEffect(() => {
    const changed = () => setRoute(route());
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  useEffect(() => {
    const begin = async () => {
      if (location.hash.startsWith(TOKEN)) {
        const token = location.hash.slice(TOKEN.length);
        history.replaceState(null, "", "#/");
        try {
          return setSession(await post("login", { token }));
        } catch (error) {
          setNote(error.message);
        }
      }
      try {
        setSession(await get("session"));
      } catch (error) {
        if (error.status !== 401) setNote(error.message);
        setSession(null);
      }
    };
    begin();
  }, []);
  useEffect(() => {
    const shown = page === "schedules" ? "Schedules" : queue === null ? "Queues" : queue || "(no name)";
    document.title = [...(task === null ? [] : [`Task ${task}`]), shown, instance, PRODUCT].join(" – ");
  }, [page, queue, task, instance]);

  const failed = useCallback((error) => {
    if (error.status === 401) {
      setNote("log in again");
      setSession(null);
    }
    return error.message;
  }, []);
  const logOut = async () => {
    await post("logout").catch(() => null);
    setNote("");
    setSession(null);
  };

  if (session === undefined) return html`<main><p class="note">…</p></main>`;
  const heading = html`<h1>${PRODUCT} <span id="instance">${instance}</span></h1>`;
  if (session === null) return html`<header>${heading}</header><${Login} onLogin=${setSession} note=${note} />`;
  return html`<header>
      ${heading}
      <nav aria-label="Pages"><a id="to-queues" href="#/">Queues</a> <a id="to-schedules" href="#/schedules">Schedules</a></nav>
      <span class="who"><span>${session.user}</span><button onClick=${logOut}>Log out</button></span>
    </header>
    <main>
      ${!session.may.includes("queues")
        ? html`<p class="problem">The user ${session.user} may not look at queues: it needs the right “read” on the universe.</p>`
        : page === "schedules"
          ? html`<${SchedulesPage} may=${session.may} failed=${failed} />`
          : queue === null
            ? html`<${Overview} may=${session.may} failed=${failed} />`
            : html`<${QueuePage} key=${queue} name=${queue} task=${task} may=${session.may} failed=${failed} />`}
    </main>`;
}

render(html`<${App} />`, document.getElementById("app"));
