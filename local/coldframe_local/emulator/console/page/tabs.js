// Two tabs: what is, and what would be. The address remembers which one, so that a reload keeps it.

import { byId, setAttribute } from "./dom.js";

const NEXT = { ArrowRight: 1, ArrowLeft: -1 };

/** Tabs by the ids of their panels. onShow: called with the id of the panel that is shown. */
export class Tabs {
  #panels;
  #onShow;

  constructor(panels, onShow) {
    this.#panels = panels;
    this.#onShow = onShow;
    for (const panel of panels) {
      const tab = this.#tab(panel);
      tab.addEventListener("click", () => this.#choose(panel));
      tab.addEventListener("keydown", (event) => this.#move(event, panel));
    }
    addEventListener("hashchange", () => this.#show(this.#named()));
    this.#show(this.#named());
  }

  #tab(panel) {
    return byId(`${panel}-tab`);
  }

  #named() {
    const name = location.hash.slice(1);
    return this.#panels.includes(name) ? name : this.#panels[0];
  }

  #choose(panel) {
    history.replaceState(undefined, "", `#${panel}`);
    this.#show(panel);
  }

  #show(shown) {
    for (const panel of this.#panels) {
      byId(panel).hidden = panel !== shown;
      setAttribute(this.#tab(panel), "aria-selected", panel === shown);
      setAttribute(this.#tab(panel), "tabindex", panel === shown ? 0 : -1);
    }
    this.#onShow(shown);
  }

  #move(event, panel) {
    const step = NEXT[event.key];
    if (!step) return;
    event.preventDefault();
    const count = this.#panels.length;
    const next = this.#panels[(this.#panels.indexOf(panel) + step + count) % count];
    this.#choose(next);
    this.#tab(next).focus();
  }
}
