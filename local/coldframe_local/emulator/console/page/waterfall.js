// Where the time of one request went: waiting, the init phase, the function's own stages, and the rest.

import { byId, element } from "./dom.js";
import { milliseconds } from "./format.js";

/** Draws rows of {name, kind, fromMs, ms} below a caption. tookMs: width of the figure. */
export function drawWaterfall(figure, caption, rows, tookMs) {
  figure.querySelector("figcaption").replaceChildren(...caption);
  figure.querySelector("tbody").replaceChildren(...rows.map((row) => drawRow(row, tookMs)));
  figure.hidden = false;
}

/**
 * An answer to this page. header: its `Server-Timing`. tookMs: as seen by this page. invocation: what the
 * emulator knows of it, or undefined when others ended at the same time.
 */
export function drawAnswer(header, tookMs, start, invocation) {
  const rows = [...stages(header, tookMs, start, invocation)];
  drawWaterfall(byId("waterfall"), caption(tookMs, start, invocation), rows, tookMs);
}

/** Rows in order: {name, kind, fromMs, ms}. */
function* stages(header, tookMs, start, invocation) {
  const timing = parse(header);
  const totalMs = timing.get("total") ?? 0;
  timing.delete("total");
  let fromMs = 0;
  const row = (name, kind, ms) => ({ name, kind, fromMs: (fromMs += ms) - ms, ms });
  if (invocation) {
    const initMs = invocation.init_ms ?? 0;
    yield row("gateway, network", "rest", Math.max(0, tookMs - initMs - invocation.duration_ms));
    if (initMs) yield row("init phase", "init", initMs);
    yield row("runtime client", "rest", Math.max(0, invocation.duration_ms - totalMs));
  } else {
    yield row(start === "cold" ? "init, gateway" : "gateway, runtime", "rest", Math.max(0, tookMs - totalMs));
  }
  let namedMs = 0;
  for (const [name, ms] of timing) {
    yield row(name, "duration", ms);
    namedMs += ms;
  }
  yield row("rest of it", "duration", Math.max(0, totalMs - namedMs));
}

function* caption(tookMs, start, invocation) {
  yield element("strong", {}, `${milliseconds(tookMs)}, ${start} start`);
  if (invocation) yield ` in ${place(invocation)}`;
}

/** Where an invocation ran, and what is billed. */
export function place({ environment_id, provisioned, spillover, billed_ms }) {
  const kind = provisioned ? "provisioned" : spillover ? "on demand by spillover" : "on demand";
  return `environment #${environment_id}, ${kind}. Billed ${billed_ms} ms.`;
}

function drawRow({ name, kind, fromMs, ms }, tookMs) {
  const bar = element("span", { class: `bar ${kind}` });
  bar.style.insetInlineStart = `${Math.min(99.6, (100 * fromMs) / tookMs)}%`;
  bar.style.inlineSize = `${Math.min(100, (100 * ms) / tookMs)}%`;
  return element(
    "tr",
    {},
    element("th", { scope: "row" }, name),
    element("td", { class: "lane" }, bar),
    element("td", { class: "value" }, ms < 0.995 ? `${ms.toFixed(2)} ms` : milliseconds(ms)),
  );
}

/** `encode;dur=6.10, heads;dur=0.2` → names to milliseconds. https://www.w3.org/TR/server-timing/ */
function parse(header) {
  const found = header.split(",").map((part) => part.trim().match(/^([\w-]+);dur=([\d.]+)$/));
  return new Map(found.filter(Boolean).map(([, name, ms]) => [name, Number(ms)]));
}
