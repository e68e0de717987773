// One text, all heads: what they say, and where the time of that request went.

import { decoded, send } from "./api.js";
import { byId, element, setText } from "./dom.js";
import { drawWaterfall } from "./waterfall.js";

const ROUTE = "/v1/predict";
const HEADS = ["auto", "logreg", "rf", "hgb", "mlp"];
const NAMES = {
  logreg: "logistic regression",
  rf: "random forest",
  hgb: "gradient boosting",
  mlp: "perceptron",
};
const EVENTS_MS = 250; // until the events tell of this request

/** The playground. seen: () => the invocations of the function that is shown, oldest first. */
export class Playground {
  #seen;

  constructor(seen) {
    this.#seen = seen;
    byId("playground").addEventListener("submit", (event) => this.#classify(event));
    byId("text").addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) byId("playground").requestSubmit();
    });
    for (const button of document.querySelectorAll(".examples button")) {
      button.addEventListener("click", () => {
        byId("text").value = button.textContent;
        byId("playground").requestSubmit();
      });
    }
  }

  async #classify(event) {
    event.preventDefault();
    setText(byId("answer-status"), "Asking…");
    const last = this.#seen().at(-1)?.number ?? 0;
    performance.clearResourceTimings();
    try {
      const asked = { text: byId("text").value, heads: HEADS, top_k: 3, cache: false };
      const response = await send("POST", ROUTE, asked);
      const answer = await decoded(response);
      if (!answer?.predictions) throw new Error(`What answers ${ROUTE} here is no classifier.`);
      this.#show(answer);
      await new Promise((resolve) => setTimeout(resolve, EVENTS_MS));
      const [took] = performance.getEntriesByName(new URL(ROUTE, location).href);
      drawWaterfall(
        response.headers.get("server-timing") ?? "",
        took.duration,
        answer.start,
        this.#own(last),
      );
    } catch (error) {
      byId("answers").replaceChildren();
      byId("waterfall").hidden = true;
      setText(byId("answer-status"), error.message);
    }
  }

  /** The invocation of our request: the one that ended since. Of several, nobody knows which. */
  #own(last) {
    const since = this.#seen().filter((each) => each.number > last);
    return since.length === 1 ? since[0] : undefined;
  }

  #show(answer) {
    const heads = answer.predictions[0].heads;
    const given = HEADS.filter((head) => head in heads);
    byId("answers").replaceChildren(...given.map((head) => card(head, heads[head])));
    const labels = new Set(given.map((head) => heads[head].label));
    const agreed = labels.size === 1 ? "All agree" : `${labels.size} different answers`;
    setText(byId("answer-status"), `${agreed}. The environment was ${answer.start}.`);
  }
}

function card(head, said) {
  const by = said.by ? `by the ${said.by}` : NAMES[head];
  return element(
    "article",
    { class: "answer", "data-head": head },
    element("h3", {}, element("code", {}, head)),
    element("p", { class: "by muted" }, by),
    element("p", { class: "label" }, said.label),
    element("ol", {}, ...said.top.map(({ label, probability }) => row(label, probability))),
  );
}

function row(label, probability) {
  const bar = element("span", { class: "probability", "aria-hidden": "true" }, element("span"));
  bar.firstChild.style.inlineSize = `${(100 * probability).toFixed(1)}%`;
  const value = element("span", { class: "value" }, `${(100 * probability).toFixed(1)}%`);
  return element("li", {}, element("span", { class: "name" }, label), value, bar);
}
