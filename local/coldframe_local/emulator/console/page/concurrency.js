// Provisioned and reserved concurrency, set through the Lambda API, as boto3 would.

import { call } from "./api.js";
import { byId, setText } from "./dom.js";
import { count } from "./format.js";

const NO_ALIAS = "Provisioned concurrency belongs to an alias, and this function has none: add AutoPublishAlias.";

/** Both forms. current: () => the view of the function that is shown. */
export class Concurrency {
  #current;
  #provisioned = new Setting("provisioned", (wanted) => this.#provision(wanted));
  #reserved = new Setting("reserved", (wanted) => this.#reserve(wanted));

  constructor(current) {
    this.#current = current;
  }

  /** Another function is shown. */
  reset() {
    this.#provisioned.reset();
    this.#reserved.reset();
  }

  draw(view) {
    const [config] = view.provisioned;
    this.#provisioned.show(config?.requested ?? 0, provisionedNote(config));
    this.#reserved.show(view.reserved_concurrency ?? "", reservedNote(view));
  }

  async #provision(wanted) {
    const { name, aliases, provisioned } = this.#current();
    const [config] = provisioned;
    const alias = config?.qualifier ?? aliases[0];
    if (!alias) throw new Error(NO_ALIAS);
    const qualifier = encodeURIComponent(alias);
    const path = `/2019-09-30/functions/${encodeURIComponent(name)}/provisioned-concurrency?Qualifier=${qualifier}`;
    if (wanted > 0) await call("PUT", path, { ProvisionedConcurrentExecutions: wanted });
    else if (config) await call("DELETE", path);
  }

  async #reserve(wanted) {
    const path = `/2017-10-31/functions/${encodeURIComponent(this.#current().name)}/concurrency`;
    await call("PUT", path, { ReservedConcurrentExecutions: wanted });
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
    byId(name).addEventListener("submit", (event) => this.#submit(event, change));
  }

  reset() {
    this.#typed = false;
    this.#problem = "";
  }

  show(value, note) {
    if (!this.#typed && this.#input.value !== String(value)) this.#input.value = value;
    setText(this.#note, this.#problem || note);
    this.#note.classList.toggle("problem", Boolean(this.#problem));
  }

  async #submit(event, change) {
    event.preventDefault();
    this.#problem = "";
    try {
      await change(Number(this.#input.value));
      this.#typed = false;
    } catch (error) {
      this.#problem = error.message;
      this.show(this.#input.value, "");
    }
  }
}

function provisionedNote(config) {
  if (!config) return "Initialised ahead of requests, so that nobody waits.";
  const { allocated, requested, status, qualifier } = config;
  return `${status}: ${count(allocated)} of ${count(requested)} initialised, on ${qualifier}.`;
}

function reservedNote({ reserved_concurrency: limit, machine_environments: machine }) {
  if (limit === null && machine === null) return "Nothing is reserved: the account's limit holds.";
  if (limit === null) return `Nothing is reserved; this machine bears ${count(machine)} at once (--concurrency).`;
  return "The most at once. Whatever comes on top is throttled: 429.";
}
