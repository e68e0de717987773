// The experiment inside the function: its arms, what is known about them, and the decisions so far.

import { call } from "./api.js";
import { byId, element, setAttribute, setText, shape } from "./dom.js";
import { count, counted, milliseconds } from "./format.js";

const PATH = "/_experiment";
const EVERY_MS = 15_000; // environments write their counts once a minute
const STATES = { running: "running", promoted: "promoted", stopped: "stopped", "sent-back": "sent back" };

/** The panel, hidden where the function has no experiment. */
export class Experiment {
  #name = "";
  #dueMs = 0;

  /** Another function is shown. */
  reset() {
    this.#name = "";
    this.#dueMs = 0;
    byId("experiment").hidden = true;
  }

  /** An event has come for this function: reads the experiment again when it is time to. */
  draw(view) {
    if (document.hidden || performance.now() < this.#dueMs) return;
    this.#name = view.name;
    this.#dueMs = Infinity;
    this.#read(view.name);
  }

  async #read(name) {
    let reading;
    try {
      reading = await call("GET", `${PATH}?function=${encodeURIComponent(name)}`);
    } catch (problem) {
      reading = { has_store: true, problem: problem.message };
    }
    if (name !== this.#name) return;
    if (reading.has_store) this.#dueMs = performance.now() + EVERY_MS; // else it never gets one
    draw(reading);
  }
}

/** Draws a reading. Where one fails, the table of the last one stays under the problem. */
function draw({ report, problem }) {
  if (!report && !problem) {
    byId("experiment").hidden = true;
    return;
  }
  setText(byId("experiment-problem"), problem ?? "");
  byId("experiment-problem").hidden = !problem;
  byId("experiment-report").hidden = !report && byId("experiment").hidden;
  if (report) drawReport(report);
  byId("experiment").hidden = false;
}

function drawReport(report) {
  setText(byId("experiment-name"), report.experiment);
  setText(byId("experiment-state"), STATES[report.state] ?? report.state);
  setAttribute(byId("experiment-state"), "data-state", report.state);
  setText(byId("experiment-facts"), facts(report).join(" · "));
  setText(byId("experiment-known"), report.sentence);
  setText(byId("experiment-decision"), decision(report));
  setText(byId("experiment-remarks"), remarks(report).join(" "));
  byId("experiment-arms").replaceChildren(...report.arms.map(row));
  byId("experiment-steps").replaceChildren(...report.steps.toReversed().map(change));
}

function facts({ kind, stage, stages, environments }) {
  const place = kind === "bandit" ? [] : [`stage ${stage + 1} of ${stages.length}`];
  return [kind, ...place, `counts of ${counted(environments, "environment")}`];
}

/** What the criteria say now; once the run has ended, why it has. */
function decision({ state, decision: present, sentence, steps }) {
  if (state === "running") return present === sentence ? "" : present;
  const reason = steps.at(-1)?.reason ?? "";
  return `It is ${STATES[state] ?? state}: ${reason}${reason.endsWith(".") ? "" : "."}`;
}

function remarks({ agreement, arms }) {
  const lines = [];
  if (agreement !== null) lines.push(`The arms agree on ${share(agreement)} of the texts that both answered.`);
  const missing = arms.reduce((sum, arm) => sum + arm.without_subject, 0);
  if (missing) lines.push(`${counted(missing, "request")} without a subject stayed out.`);
  return lines;
}

function row(arm) {
  const notes = [
    arm.abstained && `${count(arm.abstained)} abstained`,
    arm.skipped && `${count(arm.skipped)} skipped`,
  ].filter(Boolean);
  const cells = [
    [share(arm.share)],
    [count(arm.answers), ...notes.map((note) => element("small", {}, note))],
    [count(arm.errors)],
    [arm.p99_ms === null ? "–" : milliseconds(arm.p99_ms)],
    accuracy(arm),
  ];
  const data = cells.map((content) => element("td", {}, ...content));
  return element("tr", {}, element("th", { scope: "row" }, arm.name), ...data);
}

/** The accuracy by labels and its interval, in words and as a line from 0 to 100 %. */
function accuracy({ right, labelled, accuracy_interval: interval }) {
  if (!interval) return ["no labels"];
  const [low, high] = interval.map((end) => 100 * end);
  const rect = (part, x, width, y, height) => shape("rect", { class: part, x, width, y, height });
  const line = shape(
    "svg",
    { viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" },
    rect("scale", 0, 100, 3.5, 1),
    rect("interval", low, Math.max(0.5, high - low), 1.5, 5),
    rect("rate", Math.min(99, (100 * right) / labelled), 1, 0, 8),
  );
  const words = `${share(right / labelled)}, from ${low.toFixed(1)} to ${high.toFixed(1)}%`;
  return [words, element("small", {}, `${count(right)} of ${counted(labelled, "label")}`), line];
}

function change({ moment_s: moment, state, stage, reason }) {
  const iso = new Date(moment * 1000).toISOString().slice(0, 19);
  const time = element("time", { datetime: `${iso}Z` }, `${iso.replace("T", " ")}Z`);
  return element("li", {}, time, ` ${STATES[state] ?? state}, stage ${stage + 1}: ${reason}`);
}

/** A share from 0 to 1, with a decimal where it has one: 0.025 → "2.5%". */
const share = (value) => `${Number((100 * value).toFixed(1))}%`;
