// The latest invocations, a bar each: the init phase that it waited for, and its duration on top.

import { byId, setAttribute, setText, shape } from "./dom.js";
import { counted, milliseconds } from "./format.js";

const SLOT = 9;
const BAR = 6;
const ABOVE = 8; // half a label
const BELOW = 16; // for marks
const AXIS = 52;
const KEPT = 300;
const NOTE =
  "The latest ones, the newest at the right. The scale follows the longest. Click a bar to see its request below.";

/** Draws the invocations of one function. onChoose: told the number of the one whose bar is clicked. */
export class Strip {
  #invocations = [];
  #bars = new Map();
  #top = 0;
  #height = 0;
  #slots = 0;
  #pointed = 0; // number of the one that is shown below
  #plot = shape("g");
  #lines = [1, 0.5, 0].map(axisLine);
  #svg = shape("svg", { role: "img" }, hatching(), ...this.#lines.map((line) => line.node), this.#plot);

  constructor(onChoose) {
    byId("strip").append(this.#svg);
    this.#plot.addEventListener("click", (event) => {
      const bar = event.target.closest(".bar");
      if (bar) onChoose(Number(bar.dataset.number));
    });
    new ResizeObserver(() => this.#resize()).observe(byId("strip"));
    this.#resize();
  }

  /** Forgets all of them: another function, or the emulator was started anew. */
  reset() {
    this.#invocations = [];
    this.draw([]);
  }

  /** Adds the newest ones, in the order in which they ended. */
  draw(invocations) {
    this.#invocations = this.#invocations.concat(invocations).slice(-KEPT);
    const shown = this.#invocations.slice(-this.#slots);
    const top = roundUp(Math.max(10, ...shown.map((each) => each.latency_ms)));
    if (top !== this.#top) this.#rescale(top);
    const first = this.#slots - shown.length;
    const numbers = new Set(shown.map((each) => each.number));
    for (const [number, bar] of this.#bars) {
      if (!numbers.has(number)) {
        bar.remove();
        this.#bars.delete(number);
      }
    }
    shown.forEach((each, index) => {
      const bar = this.#bars.get(each.number) ?? this.#add(each);
      setAttribute(bar, "transform", `translate(${AXIS + (first + index) * SLOT} 0)`);
    });
    setAttribute(this.#svg, "aria-label", summary(shown));
    byId("strip").classList.toggle("none", shown.length === 0);
    setText(byId("strip-note"), shown.length ? NOTE : "No invocation yet.");
  }

  /** Frames the bar of this number. */
  point(number) {
    this.#bars.get(this.#pointed)?.classList.remove("shown");
    this.#pointed = number;
    this.#bars.get(number)?.classList.add("shown");
  }

  #add(each) {
    const bar = drawBar(each, this.#height, this.#height / this.#top);
    bar.classList.toggle("shown", each.number === this.#pointed);
    this.#plot.append(bar);
    this.#bars.set(each.number, bar);
    return bar;
  }

  #rescale(top) {
    this.#top = top;
    this.#bars.clear();
    this.#plot.replaceChildren();
    for (const { node, label, share } of this.#lines) {
      setAttribute(node, "transform", `translate(0 ${ABOVE + this.#height * (1 - share)})`);
      setText(label, share ? milliseconds(top * share).replace(/\.0+ /, " ") : "");
    }
  }

  #resize() {
    const { clientWidth, clientHeight } = byId("strip");
    this.#slots = Math.max(1, Math.floor((clientWidth - AXIS) / SLOT));
    this.#height = Math.max(0, clientHeight - ABOVE - BELOW);
    this.#top = 0; // everything has another place
    this.draw([]);
  }
}

function drawBar(each, height, scale) {
  const attributes = { class: `bar ${each.status}`, "data-number": each.number };
  // All of its slot can be clicked.
  const frame = shape("rect", { class: "frame", x: -1, y: 1, width: SLOT - 1, height: ABOVE + height + BELOW - 2 });
  const bar = shape("g", attributes, shape("title", {}, told(each)), frame);
  const rectangle = (kind, from, size) =>
    shape("rect", { class: kind, x: 0, y: ABOVE + height - from - size, width: BAR, height: size });
  const mark = (kind, text) =>
    shape(
      "text",
      { class: `mark ${kind}`, x: BAR / 2, y: ABOVE + height + BELOW - 4, "text-anchor": "middle" },
      text,
    );
  if (each.status === "throttled") {
    bar.append(mark("throttled", "×"));
    return bar;
  }
  const init = (each.init_ms ?? 0) * scale;
  const duration = Math.max(1.5, each.duration_ms * scale);
  const failed = each.status !== "success";
  if (init) bar.append(rectangle("init", 0, init));
  bar.append(rectangle(failed ? "duration failed" : "duration", init, duration));
  if (failed) bar.append(mark("failed", "!"));
  else if (each.provisioned) bar.append(mark("provisioned", "●"));
  else if (each.spillover) bar.append(mark("spillover", "▲"));
  return bar;
}

/** A line at this share of the height, and its label. */
function axisLine(share) {
  const label = shape("text", { x: AXIS - 8, y: 4, "text-anchor": "end" });
  const line = shape("line", { class: share ? "grid-line" : "base-line", x1: AXIS, x2: 10000 });
  return { share, label, node: shape("g", {}, line, label) };
}

/** A second cue beside the colour: the init phase is hatched. */
function hatching() {
  const size = { width: 4, height: 4, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" };
  const pattern = shape("pattern", { id: "hatching", ...size });
  pattern.append(
    shape("rect", { class: "hatch-ground", width: 4, height: 4 }),
    shape("rect", { class: "hatch-line", width: 2, height: 4 }),
  );
  return shape("defs", {}, pattern);
}

/** 1, 2 or 5 times a power of ten. */
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value);
}

function told(each) {
  if (each.status === "throttled") return `throttled: ${each.reason}`;
  const init = each.init_ms ? `init ${milliseconds(each.init_ms)} + ` : "";
  const kind = each.provisioned ? "provisioned" : each.spillover ? "spillover, on demand" : "on demand";
  const end = each.status === "success" ? "" : `, ${each.status}${each.reason ? `: ${each.reason}` : ""}`;
  return `${init}${milliseconds(each.duration_ms)} in #${each.environment_id}, ${kind}, billed ${each.billed_ms} ms${end}`;
}

function summary(shown) {
  if (!shown.length) return "No invocation yet";
  const having = (test) => shown.filter(test).length;
  const longest = Math.max(...shown.map((each) => each.latency_ms));
  return (
    `The latest ${counted(shown.length, "invocation")}: ${having((each) => each.cold)} cold, ` +
    `${having((each) => each.status === "throttled")} throttled; the longest took ${milliseconds(longest)}`
  );
}
