// The words that decided an answer, marked in its text.

import { element } from "./dom.js";

const MISSING = {
  time: "No words: the time was too short.",
  words: "No words: the model's tokens cross them.",
  failed: "No words: the explanation failed. The function's log says why.",
};

/** Nodes below an answer: its text with marks, and the weights as numbers. None where nobody wanted them. */
export function* explained(text, { explanation, unexplained }, head) {
  if (explanation) {
    const characters = Array.from(text); // offsets count code points, and those of strings do not
    const words = explanation.words.map((word) => ({
      ...word,
      text: characters.slice(word.start, word.end).join(""),
    }));
    const label = `The text, with marks by ${head}`;
    // A long text scrolls, so the keyboard must reach it.
    yield element(
      "p",
      { class: "explained", tabindex: 0, role: "group", "aria-label": label },
      ...marked(characters, words),
    );
    yield element("p", { class: "weights muted" }, numbers(words, explanation));
  } else if (unexplained) {
    yield element("p", { class: "weights muted" }, MISSING[unexplained] ?? "No words.");
  }
}

/** The text in pieces, in order: marks and what is between them. */
function* marked(characters, words) {
  const most = Math.max(...words.map(({ weight }) => weight));
  let end = 0;
  for (const word of words.toSorted((one, other) => one.start - other.start)) {
    yield characters.slice(end, word.start).join("");
    yield mark(word, word.weight / most);
    end = word.end;
  }
  yield characters.slice(end).join("");
}

function mark({ text, weight }, share) {
  const node = element("mark", { title: `weight ${signed(weight)}` }, text);
  node.style.setProperty("--share", share);
  return node;
}

function numbers(words, { method, rest }) {
  const parts = words.map(({ text, weight }) => `${text} ${signed(weight)}`);
  if (rest !== undefined) parts.push(`all else ${signed(rest)}`);
  return `Weights, ${method}: ${parts.join(" · ") || "no word speaks for the label"}`;
}

const signed = (weight) => `${weight < 0 ? "−" : "+"}${Math.abs(weight).toFixed(2)}`;
