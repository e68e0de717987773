// Another setting, simulated on the traffic of one's choice, beside what is and what was measured.

import { call } from "./api.js";
import { byId, element, setText } from "./dom.js";
import { age, count, milliseconds, percent } from "./format.js";

const PATH = "/_what-if";
const PAUSE_MS = 120; // while something is being moved
const COUNTED = new Set(["pings", "predicted pings", "provisioned"]); // levers that have a number
const LABELS = { recorded: "What came to this emulator", "office-day": "A sample: one day of an office" };
const money = (value) => `$${value.toFixed(value < 1 ? 4 : 2)}`;

// What is told of an outcome: its name, its key, and how it and a change of it are written.
const ROWS = [
  ["Cold starts", "cold_share", percent, (change) => `${signed(change * 100, 2)} points`],
  ["Throttled", "throttled_share", percent, (change) => `${signed(change * 100, 2)} points`],
  ["p50", "p50_ms", milliseconds, (change) => `${signed(change, 1)} ms`],
  ["p99", "p99_ms", milliseconds, (change) => `${signed(change, 1)} ms`],
  ["USD a month", "month_usd", money, (change) => `${change > 0 ? "+" : "−"}${money(Math.abs(change))}`],
];
const COLUMNS = ["measured", "as_it_is", "what_if"];

/** The form and its table. current: () => the view of the function that is shown. */
export class WhatIf {
  #current;
  #shown = false;
  #ready = false;
  #asked = 0;
  #timer = 0;

  constructor(current) {
    this.#current = current;
    byId("what-if-form").addEventListener("input", () => this.#moved());
    byId("what-if-form").addEventListener("submit", (event) => event.preventDefault());
    byId("what-if-again").addEventListener("click", () => this.#ask());
  }

  /** Another function is shown. */
  reset() {
    this.#ready = false;
    byId("what-if-table").hidden = true;
    if (this.#shown) this.#begin();
  }

  /** The tab is shown, or another one is. */
  show(shown) {
    this.#shown = shown;
    if (shown) this.#begin();
  }

  /** An event has come: perhaps the first one, without which there is no function to ask about. */
  draw() {
    if (this.#shown && !this.#ready) this.#begin();
  }

  async #begin() {
    const view = this.#current();
    if (!view) return;
    if (!this.#ready) {
      this.#ready = true;
      try {
        fill(await call("GET", PATH), view);
      } catch (problem) {
        this.#ready = false;
        return told(problem.message, true);
      }
    }
    this.#moved();
  }

  #moved() {
    const lever = byId("what-if-lever").value;
    byId("what-if-level").disabled = !COUNTED.has(lever);
    setText(byId("what-if-level-value"), COUNTED.has(lever) ? byId("what-if-level").value : "none");
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#ask(), PAUSE_MS);
  }

  async #ask() {
    const asked = ++this.#asked;
    told("Simulating…");
    try {
      const answer = await call("POST", PATH, {
        function: this.#current().name,
        trace: byId("what-if-trace").value,
        lever: byId("what-if-lever").value,
        level: Number(byId("what-if-level").value),
        memory_mb: Number(byId("what-if-memory").value),
      });
      if (asked === this.#asked) draw(answer); // something may have been moved since
    } catch (problem) {
      if (asked !== this.#asked) return;
      byId("what-if-table").hidden = true;
      told(problem.message, true);
    }
  }
}

/** What there is to choose, and the function's own setting. */
function fill({ traces, levers }, view) {
  const option = (value, label) => element("option", { value }, label);
  const traffic = traces.map((name) => option(name, LABELS[name] ?? `Made up: ${name}`));
  byId("what-if-trace").replaceChildren(...traffic);
  byId("what-if-lever").replaceChildren(...levers.map((name) => option(name, name)));
  byId("what-if-lever").value = view.provisioned.length ? "provisioned" : levers[0];
  byId("what-if-level").value = view.provisioned[0]?.requested ?? 1;
  const sizes = new Set([512, 1024, 1769, 3008, view.memory_size_mb]);
  const sorted = [...sizes].sort((a, b) => a - b);
  byId("what-if-memory").replaceChildren(...sorted.map((size) => option(size, `${count(size)} MB`)));
  byId("what-if-memory").value = view.memory_size_mb;
}

function draw(answer) {
  const { now, measured, as_it_is: before, what_if: after } = answer;
  const provisioned = now.lever === "provisioned" ? ` ${now.level}` : "";
  setText(byId("what-if-now"), `${now.lever}${provisioned}, ${count(now.memory_mb)} MB`);
  byId("what-if-rows").replaceChildren(
    ...ROWS.map(([name, key, write, change]) => {
      const cells = COLUMNS.map((column) => element("td", {}, written(answer[column]?.[key], write)));
      const known = Number.isFinite(before[key]) && Number.isFinite(after[key]);
      const differs = known ? after[key] - before[key] : 0;
      const kind = differs < 0 ? "less" : "more";
      const text = differs ? change(differs) : "";
      const last = /[1-9]/.test(text) // else it is too small to be seen
        ? element("td", { class: `change ${kind}` }, text)
        : element("td", {}, "none");
      return element("tr", {}, element("th", { scope: "row" }, name), ...cells, last);
    }),
  );
  byId("what-if-table").classList.toggle("unmeasured", !measured);
  byId("what-if-table").hidden = false;
  const [requests, time] = [count(after.invocations), age(answer.span_s)];
  const missing = measured ? "" : " Measured is only what came to this emulator.";
  told(`${requests} requests in ${time}; durations are those of ${answer.durations}.${missing}`);
}

const written = (value, write) => (Number.isFinite(value) ? write(value) : "–");

const signed = (value, digits) => `${value > 0 ? "+" : "−"}${Math.abs(value).toFixed(digits)}`;

function told(text, problem = false) {
  setText(byId("what-if-status"), text);
  byId("what-if-status").classList.toggle("problem", problem);
}
