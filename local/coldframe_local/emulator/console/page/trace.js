// One invocation, from its arrival to its answer, and the cold start of its environment next to it.

import { byId, element, setAttribute, setText } from "./dom.js";
import { milliseconds } from "./format.js";
import { drawWaterfall, place } from "./waterfall.js";

/**
 * The trace of one invocation: the latest, until somebody chooses another one.
 * seen: () => the invocations of the function that is shown, oldest first. onShow: told the number of the
 * invocation that is drawn.
 */
export class Trace {
  #seen;
  #onShow;
  #chosen; // an invocation; undefined: the latest
  #drawn;

  constructor(seen, onShow) {
    this.#seen = seen;
    this.#onShow = onShow;
    byId("trace-earlier").addEventListener("click", () => this.#step(-1));
    byId("trace-later").addEventListener("click", () => this.#step(1));
    byId("trace-latest").addEventListener("click", () => this.#choose(undefined));
  }

  /** Follows the latest invocation of another function, or of a new emulator. */
  reset() {
    this.#drawn = undefined;
    this.#choose(undefined);
  }

  /** Shows the invocation of this number, and stays there. */
  choose(number) {
    this.#choose(this.#seen().find((each) => each.number === number));
  }

  draw() {
    const seen = this.#seen();
    const shown = this.#chosen ?? seen.at(-1);
    byId("trace").hidden = !shown;
    if (!shown) return;
    const isFirst = shown.number <= seen[0].number;
    const isLast = shown.number >= seen.at(-1).number;
    setAttribute(byId("trace-earlier"), "aria-disabled", isFirst);
    setAttribute(byId("trace-later"), "aria-disabled", isLast);
    setAttribute(byId("trace-latest"), "aria-pressed", !this.#chosen);
    if (shown === this.#drawn) return;
    this.#drawn = shown;
    this.#show(shown, seen);
  }

  #show(shown, seen) {
    drawInvocation(byId("trace-chosen"), shown, "Request");
    const cold = seen.find((each) => each.cold && each.environment_id === shown.environment_id);
    const other = byId("trace-cold");
    if (cold && cold !== shown) drawInvocation(other, cold, "The cold start of its environment, request");
    else other.hidden = true;
    setText(byId("trace-note"), note(shown));
    this.#onShow(shown.number);
  }

  #choose(invocation) {
    this.#chosen = invocation;
    // What somebody chooses is read out; what merely happens is not.
    setAttribute(byId("trace-chosen").querySelector("figcaption"), "aria-live", invocation ? "polite" : "off");
    this.draw();
  }

  /** From the one that is drawn, by so many. */
  #step(by) {
    const seen = this.#seen();
    const place = seen.findIndex((each) => each.number >= this.#drawn.number);
    const next = seen[place + by];
    if (next) this.#choose(next);
  }
}

function drawInvocation(figure, invocation, title) {
  const rows = [...parts(invocation)];
  drawWaterfall(figure, caption(invocation, title), rows, Math.max(invocation.latency_ms, 0.01));
}

/** Rows in order; the function's stages lie within its own row. */
function* parts({ status, latency_ms, init_ms, restore_ms, duration_ms, request }) {
  if (status === "throttled") return;
  const startMs = (init_ms ?? 0) + (restore_ms ?? 0);
  const waitMs = Math.max(0, latency_ms - startMs - duration_ms);
  yield { name: "queue, emulator", kind: "rest", fromMs: 0, ms: waitMs };
  if (init_ms) yield { name: "init phase", kind: "init", fromMs: waitMs, ms: init_ms };
  if (restore_ms) yield { name: "restore", kind: "init", fromMs: waitMs, ms: restore_ms };
  const ownMs = Math.min(request?.duration_ms ?? duration_ms, duration_ms);
  const clientMs = duration_ms - ownMs;
  const beginMs = waitMs + startMs;
  if (request) yield { name: "runtime client", kind: "rest", fromMs: beginMs, ms: clientMs };
  yield { name: "function", kind: "duration", fromMs: beginMs + clientMs, ms: ownMs };
  for (const { name, start_ms, duration_ms: ms } of request?.stages ?? [])
    yield { name, kind: "stage", fromMs: beginMs + clientMs + start_ms, ms };
}

function* caption(invocation, title) {
  const { number, status, reason, latency_ms, cold } = invocation;
  const name = `${title} #${number}: `;
  if (status === "throttled") {
    yield element("strong", {}, `${name}throttled`);
    yield `, because of ${reason}.`;
    return;
  }
  yield element("strong", {}, `${name}${milliseconds(latency_ms)}, ${cold ? "cold" : "warm"}`);
  yield ` in ${place(invocation)}`;
  if (status !== "success") yield ` It ended with ${[status, reason].filter(Boolean).join(", ")}.`;
}

function note({ number, status, request }) {
  if (status === "throttled") return "No environment worked on it.";
  if (!request) return "Its log has no line with stages, so the function is one row.";
  return request.trace_id ? `The trace of request #${number} is ${request.trace_id}.` : "";
}
