// The environments as a grid: one tile each, kept for as long as it lives, so that nothing flickers.

import { byId, element, setAttribute, setText } from "./dom.js";
import { age, count, counted } from "./format.js";

const FADE_MS = 6000;
const MANY = 40; // from here on, tiles are small
const STATES = {
  INIT: "initialising",
  INVOKING: "busy",
  READY: "ready",
  STOPPED: "stopped",
};
const calm = matchMedia("(prefers-reduced-motion: reduce)");

/** Draws the environments of one function. */
export class Environments {
  #tiles = new Map();
  #counts = new Map();
  #grid = byId("grid");

  constructor() {
    for (const state of ["INIT", "INVOKING", "READY"]) {
      const number = element("span");
      const glyph = element("span", { class: "glyph", "data-state": state, "aria-hidden": "true" });
      byId("states").append(element("li", {}, glyph, number));
      this.#counts.set(state, number);
    }
  }

  /** Forgets all of them: another function, or the emulator was started anew. */
  reset() {
    this.#tiles.clear();
    this.#grid.replaceChildren();
  }

  draw(views) {
    const living = new Set(views.map((view) => view.id));
    for (const [id, tile] of this.#tiles) if (!living.has(id)) this.#stop(id, tile);
    views.sort((one, other) => other.provisioned - one.provisioned || one.id - other.id);
    for (const view of views) {
      const tile = this.#tiles.get(view.id) ?? this.#add(view);
      tile.draw(view);
    }
    for (const [state, number] of this.#counts) {
      const inState = views.filter((view) => view.state === state).length;
      setText(number, `${count(inState)} ${STATES[state]}`);
    }
    this.#grid.classList.toggle("many", views.length > MANY);
    byId("empty").hidden = this.#grid.childElementCount > 0;
  }

  /** Provisioned ones come first; among each other, they stay in the order in which they started. */
  #add(view) {
    const tile = new Tile(view);
    const next = [...this.#tiles.values()].find((other) => !view.provisioned < !other.provisioned);
    this.#grid.insertBefore(tile.node, next?.node ?? null);
    this.#tiles.set(view.id, tile);
    return tile;
  }

  #stop(id, tile) {
    this.#tiles.delete(id);
    tile.stop();
    setTimeout(() => {
      tile.node.remove();
      byId("empty").hidden = this.#grid.childElementCount > 0;
    }, FADE_MS);
  }
}

class Tile {
  #state = element("span", { class: "state" });
  #facts = element("span", { class: "facts" });
  #served = element("span", { class: "served" });
  #invocations = 0;

  constructor(view) {
    const glyph = element("span", { class: "glyph", "aria-hidden": "true" });
    const number = element("span", { class: "number" }, `#${view.id}`);
    const kind = element("span", { class: "kind" }, view.provisioned ? "provisioned" : "on demand");
    const version = element(
      "span",
      { class: "version" },
      ` · ${view.version === "$LATEST" ? view.version : `v${view.version}`}`,
    );
    this.provisioned = view.provisioned;
    this.node = element(
      "li",
      { class: "tile", "data-provisioned": view.provisioned ? "" : undefined },
      element("span", { class: "tile-head" }, glyph, this.#state, number),
      this.#served,
      element("span", { class: "about" }, kind, version),
      this.#facts,
    );
    this.#invocations = view.invocations;
  }

  draw(view) {
    this.#become(view.state);
    setText(this.#served, counted(view.invocations, "invocation"));
    const memory = view.memory_mb ? ` · ${count(view.memory_mb)} MB` : "";
    setText(this.#facts, `${age(view.age_s)} old${memory}`);
    if (view.invocations > this.#invocations && view.state === "READY") this.#flash();
    this.#invocations = view.invocations;
  }

  stop() {
    this.#become("STOPPED");
  }

  #become(state) {
    setAttribute(this.node, "data-state", state);
    setText(this.#state, STATES[state]);
  }

  /** It was busy and is not any more: too quick to be seen otherwise. */
  #flash() {
    if (calm.matches) return;
    const glow = getComputedStyle(this.node).getPropertyValue("--busy");
    this.node.animate([{ boxShadow: `0 0 0 2px ${glow}` }, { boxShadow: "0 0 0 2px transparent" }], 700);
  }
}
