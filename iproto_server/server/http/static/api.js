// Requests to the API. Texts may have lone surrogates for bytes that are no UTF-8.

export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export function encode(text) {
  let encoded = "";
  for (const sign of text) {
    const code = sign.codePointAt(0);
    if (code >= 0xdc80 && code <= 0xdcff) encoded += "%" + (code - 0xdc00).toString(16).toUpperCase();
    else if (code >= 0xd800 && code <= 0xdfff) encoded += "%EF%BF%BD";
    else encoded += encodeURIComponent(sign);
  }
  return encoded;
}

export function query(parameters) {
  const parts = Object.entries(parameters).filter(([, value]) => value !== null && value !== "");
  return parts.length ? "?" + parts.map(([name, value]) => `${name}=${encode(String(value))}`).join("&") : "";
}

async function send(path, options) {
  let response;
  try {
    response = await fetch("api/" + path, { credentials: "same-origin", cache: "no-store", ...options });
  } catch {
    throw new ApiError(0, "the server does not answer");
  }
  const value = await response.json().catch(() => ({ error: `the server answered with status ${response.status}` }));
  if (!response.ok) throw new ApiError(response.status, value.error);
  return value;
}

export const get = (path, parameters = {}) => send(path + query(parameters), {});

export const post = (path, body = {}) =>
  send(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

export const put = (path, body) =>
  send(path, { method: "PUT", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

export const remove = (path) => send(path, { method: "DELETE" });

export const ofQueue = (name, rest = "") => `queues/${encode(name)}${rest}`;
// The address of a task's dialog.
export const ofTask = (queue, id) => `#/queues/${encode(queue)}/tasks/${encode(id)}`;
export const ofSchedule = (name) => `schedules/${encode(name)}`;
