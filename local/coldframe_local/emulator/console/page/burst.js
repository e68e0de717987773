// Many requests at once, and what they brought.

import { call } from "./api.js";
import { byId, element, setText } from "./dom.js";
import { count, counted, milliseconds, usd } from "./format.js";

// An everyday text that says its matter plainly: the estimator of many a model is sure of it.
const SENT = { text: "My Windows laptop crashes when I open the app", cache: false };
const SETTLE_MS = 400; // until the events tell of the last of them
const THROTTLED = 429;

/** The form that sends them. current: () => the view of the function that is shown, or undefined. */
export class Burst {
  #current;
  #busy = false;

  constructor(current) {
    this.#current = current;
    byId("burst-body").value = JSON.stringify(SENT);
    byId("burst-count").addEventListener("input", () => this.#label());
    byId("burst").addEventListener("submit", (event) => this.#send(event));
  }

  /** Another function is shown. */
  reset() {
    byId("burst-result").replaceChildren();
  }

  async #send(event) {
    event.preventDefault();
    if (this.#busy) return;
    this.#become(true);
    const before = this.#current();
    const burst = {
      count: Number(byId("burst-count").value),
      path: byId("burst-path").value,
      body: byId("burst-body").value,
    };
    try {
      const report = await call("POST", "/_console/burst", burst);
      await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
      const after = this.#current();
      // Another function may be shown by now, whose counts say nothing of these requests.
      if (after.name === before.name) byId("burst-result").replaceChildren(...told(report, before, after));
    } catch (error) {
      byId("burst-result").replaceChildren(element("p", { class: "problem" }, error.message));
    }
    this.#become(false);
  }

  #become(busy) {
    this.#busy = busy;
    byId("burst-send").setAttribute("aria-disabled", busy);
    this.#label();
  }

  #label() {
    const wanted = byId("burst-count").value || "…";
    setText(byId("burst-send"), this.#busy ? "Sending…" : `Send ${wanted} at once`);
  }
}

/** A sentence for each kind of answer. before, after: views of the function. */
function* told({ answers, total_ms: totalMs }, before, after) {
  const served = answers.filter(isServed);
  const throttled = answers.filter(({ status }) => status === THROTTLED);
  const failed = answers.filter((answer) => !isServed(answer) && answer.status !== THROTTLED);
  const sentences = [];
  if (served.length) {
    const cold = count(after.cold_starts - before.cold_starts);
    const half = milliseconds(median(served.map((answer) => answer.latency_ms)));
    sentences.push(`${count(served.length)} answered, ${cold} of them cold; half within ${half}.`);
  }
  if (throttled.length) {
    const byLambda = Math.min(throttled.length, after.throttles - before.throttles);
    const byGateway = throttled.length - byLambda;
    const limit = after.reserved_concurrency ?? after.machine_environments;
    const why = limit === null ? "the account has no more" : `the limit is ${count(limit)} at once`;
    if (byLambda) sentences.push(`${count(byLambda)} throttled: ${why}.`);
    if (byGateway) sentences.push(`${count(byGateway)} throttled by the gateway: the template's ThrottleRate and ThrottleBurst.`);
  }
  if (failed.length) sentences.push(`${count(failed.length)} failed: ${statuses(failed)}.`);
  sentences.push(`It cost ${usd(after.cost_usd - before.cost_usd)}.`);
  const sent = `${counted(answers.length, "request")} in ${milliseconds(totalMs)}.`;
  yield element("p", {}, element("strong", {}, sent));
  yield element("ul", {}, ...sentences.map((sentence) => element("li", {}, sentence)));
}

const isServed = ({ status }) => status >= 200 && status < 300;

function statuses(failed) {
  const names = failed.map(({ status }) => (status ? `status ${status}` : "no connection"));
  return [...new Set(names)].join(", ");
}

function median(values) {
  const ordered = values.sort((one, other) => one - other);
  return ordered[Math.ceil(ordered.length / 2) - 1];
}
