// The row of figures: what the function does, and what it costs.

import { byId, element, setAttribute, setText, shape } from "./dom.js";
import { count, counted, milliseconds, percent, usd } from "./format.js";

const SECONDS = 60;
const BAR = 3;
const HEIGHT = 26;

const NOTHING = { arrived: 0, refused: 0 };

const FIGURES = [
  ["arrivals", "Arrivals"],
  ["latency", "Latency, p50"],
  ["cold", "Cold starts"],
  ["concurrency", "Concurrency"],
  ["spillover", "Spillover"],
  ["throttles", "Throttles"],
  ["cost", "Cost so far"],
];

/** Draws the figures of one function. */
export class Figures {
  #cells = new Map();
  #history = new History();
  #spark = shape("path", { class: "arrived" });
  #refused = shape("path", { class: "refused" });

  constructor() {
    for (const [key, title] of FIGURES) {
      const cell = { value: element("span", { class: "value" }), note: element("span", { class: "note" }) };
      const data = element("dd", {}, cell.value, cell.note);
      byId("figures").append(element("div", { class: `figure ${key}` }, element("dt", {}, title), data));
      this.#cells.set(key, cell);
    }
    const size = {
      viewBox: `0 0 ${SECONDS * BAR} ${HEIGHT}`,
      preserveAspectRatio: "none",
      "aria-hidden": "true",
    };
    this.#cells
      .get("arrivals")
      .note.after(shape("svg", { class: "spark", ...size }, this.#spark, this.#refused));
    this.meter = element("span", { class: "meter", "aria-hidden": "true" }, element("span"));
    this.#cells.get("concurrency").note.after(this.meter);
  }

  /** Forgets what was before: another function, or the emulator was started anew. */
  reset() {
    this.#history = new History();
  }

  draw(view, account) {
    this.#history.add(view, Date.now() / 1000);
    this.#drawSpark();
    const { p50, p95, p99, count: measured } = view.latency_ms;
    const done = view.invocations;
    const limit =
      view.reserved_concurrency ?? view.machine_environments ?? account.unreserved_concurrent_executions;
    const few = measured < 100 ? ` (slowest of ${measured})` : "";
    const spread = `p95 ${milliseconds(p95)}\np99 ${milliseconds(p99)}${few}`;
    const perMillion = `${usd((view.cost_usd / done) * 1e6)} per million`;
    this.#set("arrivals", `${view.arrivals_per_s.toFixed(1)}/s`, `${count(view.arrivals)} in all`);
    this.#set("latency", done ? milliseconds(p50) : "–", done ? spread : "arrival to answer");
    const init = view.init_ms.p50 ? `\ninit p50 ${milliseconds(view.init_ms.p50)}` : "";
    this.#set(
      "cold",
      done ? percent(view.cold_starts / done) : "–",
      `${count(view.cold_starts)} of ${count(done)}${init}`,
    );
    this.#set(
      "concurrency",
      count(view.concurrent_executions),
      `of ${count(limit)}, peak ${count(view.most_concurrent_executions)}`,
    );
    this.#set("spillover", count(view.spillover_invocations), spilled(view));
    this.#set("throttles", count(view.throttles), view.errors ? counted(view.errors, "error") : "no errors");
    this.#set("cost", usd(view.cost_usd), done ? perMillion : "nothing served yet");
    setAttribute(this.#cells.get("throttles").value, "data-bad", view.throttles ? "" : undefined);
    this.meter.firstChild.style.inlineSize = `${Math.min(100, (100 * view.concurrent_executions) / Math.max(1, limit))}%`;
  }

  #set(key, value, note) {
    setText(this.#cells.get(key).value, value);
    setText(this.#cells.get(key).note, note);
  }

  #drawSpark() {
    const seconds = this.#history.seconds();
    const highest = Math.max(5, ...seconds.map((second) => second.arrived));
    const bars = (read) =>
      seconds
        .map((second, index) => [index * BAR, Math.round((HEIGHT * read(second)) / highest)])
        .filter(([, height]) => height > 0)
        .map(([x, height]) => `M${x} ${HEIGHT}v${-height}h${BAR - 1}v${height}z`)
        .join("");
    setAttribute(
      this.#spark,
      "d",
      bars((second) => second.arrived),
    );
    setAttribute(
      this.#refused,
      "d",
      bars((second) => second.refused),
    );
  }
}

function spilled(view) {
  const allocated = view.provisioned.reduce((sum, config) => sum + config.allocated, 0);
  if (!allocated) return "none provisioned";
  return `${percent(view.provisioned_utilization)} of ${count(allocated)} provisioned busy`;
}

/** Arrivals and throttles, second by second, for a minute. */
class History {
  #bins = new Map();
  #before;

  add(view, now) {
    const second = Math.floor(now);
    const bin = this.#bins.get(second) ?? { ...NOTHING };
    if (this.#before) {
      bin.arrived += view.arrivals - this.#before.arrivals;
      bin.refused += view.throttles - this.#before.throttles;
    }
    this.#bins.set(second, bin);
    this.#before = view;
    for (const old of this.#bins.keys()) if (old <= second - SECONDS) this.#bins.delete(old);
  }

  seconds() {
    const now = Math.max(...this.#bins.keys());
    return Array.from(
      { length: SECONDS },
      (_, index) => this.#bins.get(now - SECONDS + 1 + index) ?? NOTHING,
    );
  }
}
