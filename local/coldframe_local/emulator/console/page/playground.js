// One text, all heads: what they say, and where the time of that request went.

import { decoded, send } from "./api.js";
import { byId, element, setAttribute, setText } from "./dom.js";
import { explained } from "./explanation.js";
import { drawAnswer } from "./waterfall.js";

const ROUTE = "/v1/predict";
const MODELS = "/v1/models";
const INVALID = 422; // what a model says of a head that it does not have
const AUTO = "auto";
const NAMES = {
  logreg: "logistic regression",
  rf: "random forest",
  hgb: "gradient boosting",
  mlp: "perceptron",
  ensemble: "mean of heads",
};
const UNSURE = 0.5; // below, another label is as likely as not
const STRANGE = 0.99; // above, a text is stranger to the model than 99 % of what it was validated with
const VERSION_SHOWN = "sha256:".length + 12;
const EVENTS_MS = 250; // until the events tell of this request

/** The playground. seen: () => the invocations of the function that is shown, oldest first. */
export class Playground {
  #seen;
  #heads;
  #models; // by name, once somebody wanted to choose one

  constructor(seen) {
    this.#seen = seen;
    this.reset();
    byId("playground").addEventListener("submit", (event) => this.#classify(event));
    byId("text").addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) byId("playground").requestSubmit();
    });
    byId("copy").addEventListener("click", () => copy(this.#heads));
    byId("model").addEventListener("focus", () => this.#list());
    byId("model").addEventListener("change", () => this.#choose());
    for (const button of document.querySelectorAll(".examples button")) {
      button.addEventListener("click", () => {
        byId("text").value = button.textContent;
        byId("playground").requestSubmit();
      });
    }
  }

  /** Another model may be served: it is taken to have all heads until it says otherwise. */
  reset() {
    this.#heads = [AUTO, ...Object.keys(NAMES)];
    this.#models = undefined;
    byId("model").replaceChildren(option("", "the default model"));
  }

  /** Names of the models, in the list to choose from. */
  async #list() {
    if (this.#models) return;
    const listed = await models();
    if (!listed) return say(`No list of models: ${MODELS} has none.`);
    this.#models = listed;
    byId("model").append(...listed.map(({ id }) => option(id, id)));
  }

  #choose() {
    const chosen = this.#models.find(({ id }) => id === byId("model").value);
    this.#heads = headsOf(chosen ?? this.#models[0]);
  }

  async #classify(event) {
    event.preventDefault();
    say("Asking…");
    const last = this.#seen().at(-1)?.number ?? 0;
    performance.clearResourceTimings();
    try {
      const text = byId("text").value;
      const response = await this.#ask();
      const answer = await decoded(response);
      if (!answer?.predictions) throw new Error(`What answers ${ROUTE} here is no classifier.`);
      this.#show(answer, text);
      await new Promise((resolve) => setTimeout(resolve, EVENTS_MS));
      const took = performance.getEntriesByName(new URL(ROUTE, location).href).at(-1);
      drawAnswer(
        response.headers.get("server-timing") ?? "",
        took.duration,
        answer.start,
        this.#own(last),
      );
    } catch (error) {
      byId("answers").replaceChildren();
      byId("waterfall").hidden = true;
      say(error.message);
    }
  }

  /**
   * The response, by the heads that the model has. The list of models is read only after a refusal: in a cold
   * environment it would load everything, and hide what a first answer costs.
   */
  async #ask() {
    const response = await send("POST", ROUTE, asked(this.#heads));
    if (response.status !== INVALID) return response;
    const listed = await models();
    const served = listed && headsOf(listed.find(({ id }) => id === byId("model").value) ?? listed[0]);
    if (!served || served.join() === this.#heads.join()) return response;
    this.#heads = served;
    return send("POST", ROUTE, asked(served));
  }

  /** The invocation of our request: the one that ended since. Of several, nobody knows which. */
  #own(last) {
    const since = this.#seen().filter((each) => each.number > last);
    return since.length === 1 ? since[0] : undefined;
  }

  #show(answer, text) {
    const heads = answer.predictions[0].heads;
    const given = this.#heads.filter((head) => head in heads);
    byId("answers").replaceChildren(...given.map((head) => card(head, heads[head], text)));
    const labels = new Set(given.map((head) => heads[head].label));
    const agreed = labels.size === 1 ? "All agree" : `${labels.size} different answers`;
    say(`${agreed}. The environment was ${answer.start}. ${by(answer)}`, answer.version);
  }
}

function asked(heads) {
  const model = byId("model").value;
  const explain = byId("explain").checked && { explain: true };
  return { ...(model && { model }), text: byId("text").value, heads, top_k: 3, cache: false, ...explain };
}

/** The models that are served, the default one first; undefined where no list says so. */
async function models() {
  const { data } = await send("GET", MODELS)
    .then(decoded)
    .catch(() => ({}));
  const found = data?.filter((model) => model.default_head);
  return found?.length ? found : undefined;
}

/** The heads of a model, in our order. */
const headsOf = (model) => [AUTO, ...Object.keys(NAMES).filter((name) => name in model.heads)];

function option(value, text) {
  return element("option", { value }, text);
}

/** What the line under the form says. title: more of it, as a tooltip. */
function say(text, title) {
  setText(byId("answer-status"), text);
  setAttribute(byId("answer-status"), "title", title);
}

/** Which model answered, where the answer says so. */
function by({ model, version }) {
  return model && version ? `By ${model}, version ${version.slice(0, VERSION_SHOWN)}.` : "";
}

async function copy(heads) {
  const body = JSON.stringify(asked(heads));
  const url = new URL(ROUTE, location).href;
  const command = `curl ${quoted(url)} --header 'content-type: application/json' --data ${quoted(body)}`;
  try {
    await navigator.clipboard.writeText(command);
    say("Copied.");
  } catch {
    say(command); // no clipboard under a name that is not this machine's, without TLS
  }
}

/** One word of a POSIX shell. */
const quoted = (text) => `'${text.replaceAll("'", String.raw`'\''`)}'`;

function card(head, said, text) {
  const [given, ...others] = said.top;
  const who = said.by ? `by the ${said.by}` : NAMES[head];
  const doubts = [
    said.abstained ? "abstains" : given.probability < UNSURE && "unsure",
    said.out_of_distribution > STRANGE && "unlike what the model knows",
  ];
  return element(
    "article",
    { class: "answer", "data-head": head },
    element("h3", {}, element("code", {}, head)),
    element("p", { class: "by muted" }, [who, ...doubts.filter(Boolean)].join(" · ")),
    element(
      "p",
      { class: "given" },
      element("span", { class: "label" }, said.label ?? `not sure enough of ${given.label}`),
      element("span", { class: "value" }, share(given.probability)),
    ),
    bar(given.probability),
    element("ol", {}, ...others.map(({ label, probability }) => row(label, probability))),
    ...explained(text, said, head),
  );
}

function row(label, probability) {
  const name = element("span", { class: "name", title: label }, label);
  return element(
    "li",
    {},
    name,
    element("span", { class: "value" }, share(probability)),
    bar(probability),
  );
}

function bar(probability) {
  const outer = element("span", { class: "probability", "aria-hidden": "true" }, element("span"));
  outer.firstChild.style.inlineSize = share(probability);
  outer.classList.toggle("unsure", probability < UNSURE);
  return outer;
}

const share = (probability) => `${(100 * probability).toFixed(1)}%`;
