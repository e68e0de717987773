// The page: takes each event of the emulator to what draws it.

import { Burst } from "./burst.js";
import { Concurrency } from "./concurrency.js";
import { byId, element, setAttribute, setText } from "./dom.js";
import { Environments } from "./environments.js";
import { Experiment } from "./experiment.js";
import { Figures } from "./figures.js";
import { count } from "./format.js";
import { Playground } from "./playground.js";
import { listen } from "./stream.js";
import { Strip } from "./strip.js";
import { Tabs } from "./tabs.js";
import { Trace } from "./trace.js";
import { WhatIf } from "./what-if.js";

const KEPT = 300; // invocations of each function, for who looks at another one

const shown = { run: "", name: "", last: 0, snapshot: undefined, invocations: new Map() };
const figures = new Figures();
const environments = new Environments();
const strip = new Strip((number) => trace.choose(number));
const trace = new Trace(ownInvocations, (number) => strip.point(number));
const burst = new Burst(current);
const concurrency = new Concurrency(current);
const playground = new Playground(ownInvocations);
const experiment = new Experiment();
const whatIf = new WhatIf(current);

function current() {
  return shown.snapshot?.functions.find((view) => view.name === shown.name);
}

function ownInvocations() {
  return shown.invocations.get(shown.name) ?? [];
}

function receive({ run, snapshot, invocations }) {
  if (run !== shown.run) begin(run, snapshot);
  const fresh = invocations.filter((each) => each.number > shown.last);
  shown.last = fresh.at(-1)?.number ?? shown.last;
  shown.snapshot = snapshot;
  for (const each of fresh) {
    const kept = shown.invocations.get(each.function) ?? [];
    kept.push(each);
    if (kept.length > KEPT) kept.shift();
    shown.invocations.set(each.function, kept);
  }
  draw(fresh.filter((each) => each.function === shown.name));
}

/** The first event, or the first after the emulator was started anew: nothing of before holds. */
function begin(run, snapshot) {
  Object.assign(shown, { run, last: 0, invocations: new Map() });
  const names = snapshot.functions.map((view) => view.name);
  const select = byId("function");
  select.replaceChildren(...names.map((name) => element("option", { value: name }, name)));
  select.hidden = names.length < 2;
  byId("function-name").hidden = !select.hidden;
  show(names.includes(shown.name) ? shown.name : (names[0] ?? ""));
}

function show(name) {
  shown.name = name;
  byId("function").value = name;
  setText(byId("function-name"), name);
  const parts = [figures, environments, strip, trace, burst, concurrency, experiment, playground, whatIf];
  for (const part of parts) part.reset();
}

function draw(fresh) {
  const view = current();
  if (!view) return;
  setText(byId("function-facts"), `${count(view.memory_size_mb)} MB · ${view.timeout_s} s timeout`);
  figures.draw(view, shown.snapshot.account);
  environments.draw(shown.snapshot.environments.filter((each) => each.function === shown.name));
  concurrency.draw(view);
  strip.draw(fresh);
  experiment.draw(view);
  trace.draw();
  whatIf.draw();
}

function connection(state) {
  const lost = state === "lost";
  setAttribute(byId("connection"), "data-state", state);
  setText(byId("connection-text"), state);
  const told = `Connection lost. The emulator at ${location.host} does not answer; what you see is how it was. Trying again.`;
  setText(byId("lost"), lost ? told : "");
  byId("lost").hidden = !lost;
  document.body.classList.toggle("stale", lost);
}

byId("function").addEventListener("change", (event) => {
  show(event.target.value);
  draw(ownInvocations());
});
new Tabs(["live", "what-if"], (panel) => whatIf.show(panel === "what-if"));
listen(receive, connection);
