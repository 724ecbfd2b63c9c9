// What the reader looks at, in the address: a link shows the same.

import { COLOURINGS } from "./colours.js";

export class Address {
  constructor(store) {
    this._store = store;
    this._read();
    window.addEventListener("hashchange", () => this._read());
    store.subscribe((changed) => {
      if (store.run && ["chosen", "colour", "round", "split"].some((topic) => changed.has(topic))) this._write();
    });
  }

  _read() {
    const store = this._store;
    const said = new URLSearchParams(location.hash.slice(1));
    const round = Number(said.get("round"));
    const zone = said.get("zone");
    store.set("chosen", zone && (!store.byName || store.byName.has(zone)) ? zone : null);
    store.set("colour", Object.hasOwn(COLOURINGS, said.get("colour")) ? said.get("colour") : "error");
    store.set("split", said.get("split") === "validation" ? "validation" : "test");
    store.set("round", Number.isInteger(round) && round > 0 ? Math.min(round, store.run?.rounds ?? Infinity) : null);
    if (store.run) this._write(); // what it says and cannot be shown does not stay there
  }

  _write() {
    const { chosen, colour, round, split } = this._store;
    const said = new URLSearchParams();
    if (chosen) said.set("zone", chosen);
    if (colour !== "error") said.set("colour", colour);
    if (split !== "test") said.set("split", split);
    if (round !== null) said.set("round", round);
    const hash = said.size ? `#${said}` : location.pathname + location.search;
    if (said.size ? location.hash !== hash : location.hash) history.replaceState(null, "", hash);
  }
}
