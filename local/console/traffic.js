// The forms that change something: bursts of requests, provisioned and reserved concurrency.

import { byId, element, setText } from "./dom.js";
import { count, counted, milliseconds, usd } from "./format.js";

const SENT = { text: "The shuttle reached orbit after a perfect launch", cache: false };
const SETTLE_MS = 400; // until the events tell of the last of them

/** The traffic panel. current: () => the view of the function that is shown, or undefined. */
export class Traffic {
  #current;
  #busy = false;

  constructor(current) {
    this.#current = current;
    byId("burst-body").value = JSON.stringify(SENT);
    byId("burst-count").addEventListener("input", () => this.#label());
    byId("burst").addEventListener("submit", (event) => this.#send(event));
    this.#provisioned = new Setting("provisioned", (count) => this.#provision(count));
    this.#reserved = new Setting("reserved", (count) => this.#reserve(count));
  }
  #provisioned;
  #reserved;

  /** Another function is shown. */
  reset() {
    this.#provisioned.reset();
    this.#reserved.reset();
    byId("burst-result").replaceChildren();
  }

  draw(view) {
    const [config] = view.provisioned;
    this.#provisioned.show(config?.requested ?? 0, provisionedNote(config));
    const limit = view.reserved_concurrency;
    this.#reserved.show(limit ?? "", limit === null ? "Nothing is reserved: the account's limit holds." : "The most at once. Whatever comes on top is throttled: 429.");
  }

  #label() {
    setText(byId("burst-send"), this.#busy ? "Sending…" : `Send ${byId("burst-count").value || "…"} at once`);
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
      byId("burst-result").replaceChildren(...told(report, before, this.#current()));
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

  /** Through the Lambda API, as boto3 would. */
  #provision(wanted) {
    const { name, provisioned } = this.#current();
    const [config] = provisioned;
    const path = `/2019-09-30/functions/${encodeURIComponent(name)}/provisioned-concurrency`;
    const qualified = `${path}?Qualifier=${encodeURIComponent(config?.qualifier ?? "live")}`;
    if (wanted > 0) return call("PUT", qualified, { ProvisionedConcurrentExecutions: wanted });
    return config ? call("DELETE", qualified) : undefined;
  }

  #reserve(wanted) {
    const path = `/2017-10-31/functions/${encodeURIComponent(this.#current().name)}/concurrency`;
    return call("PUT", path, { ReservedConcurrentExecutions: wanted });
  }
}

/** A number with its button. What is being typed is not overwritten by what is the case. */
class Setting {
  #input;
  #note;
  #typed = false;
  #problem = "";

  constructor(name, change) {
    this.#input = byId(`${name}-count`);
    this.#note = byId(`${name}-note`);
    this.#input.addEventListener("input", () => (this.#typed = true));
    byId(name).addEventListener("submit", async (event) => {
      event.preventDefault();
      this.#problem = "";
      try {
        await change(Number(this.#input.value));
        this.#typed = false;
      } catch (error) {
        this.#problem = error.message;
        this.#tell(this.#problem);
      }
    });
  }

  reset() {
    this.#typed = false;
    this.#problem = "";
  }

  show(value, note) {
    if (!this.#typed && this.#input.value !== String(value)) this.#input.value = value;
    this.#tell(this.#problem || note);
  }

  #tell(text) {
    setText(this.#note, text);
    this.#note.classList.toggle("problem", Boolean(this.#problem));
  }
}

function provisionedNote(config) {
  if (!config) return "Initialised ahead of requests, so that nobody waits.";
  const { allocated, requested, status, qualifier } = config;
  return `${status}: ${count(allocated)} of ${count(requested)} initialised, on ${qualifier}.`;
}

/** What a burst brought, in a sentence for each kind of answer. */
function* told(report, before, after) {
  const having = (test) => report.answers.filter(({ status }) => test(status));
  const served = having((status) => status >= 200 && status < 300);
  const throttled = having((status) => status === 429);
  const others = report.answers.length - served.length - throttled.length;
  const sent = counted(report.answers.length, "request");
  yield element("p", {}, element("strong", {}, `${sent} in ${milliseconds(report.total_ms)}.`));
  const list = element("ul");
  if (served.length) {
    const times = served.map((answer) => answer.latency_ms).sort((one, other) => one - other);
    const middle = times[Math.ceil(times.length / 2) - 1];
    const cold = after && before ? after.cold_starts - before.cold_starts : 0;
    list.append(element("li", {}, `${count(served.length)} answered, ${count(cold)} of them cold; half within ${milliseconds(middle)}.`));
  }
  if (throttled.length) {
    const limit = after?.reserved_concurrency;
    const whose = limit === null || limit === undefined ? "the account has no more" : `the limit is ${count(limit)} at once`;
    list.append(element("li", {}, `${count(throttled.length)} throttled: ${whose}.`));
  }
  if (others) list.append(element("li", { class: "problem" }, `${count(others)} failed: ${statuses(report)}.`));
  if (after && before) list.append(element("li", {}, `It cost ${usd(after.cost_usd - before.cost_usd)}.`));
  yield list;
}

function statuses(report) {
  const failed = report.answers.map(({ status }) => status).filter((status) => status !== 429 && !(status >= 200 && status < 300));
  return [...new Set(failed)].map((status) => (status ? `status ${status}` : "no connection")).join(", ");
}

/** A call to the emulator's own API; its error says what was wrong. */
async function call(method, path, body) {
  const request = { method, body: body && JSON.stringify(body), headers: { "content-type": "application/json" } };
  const response = await fetch(path, request).catch(() => {
    throw new Error("The emulator does not answer.");
  });
  const text = await response.text();
  const answer = text ? JSON.parse(text) : {};
  if (!response.ok) throw new Error(answer.detail ?? answer.message ?? answer.Message ?? `Status ${response.status}.`);
  return answer;
}
