// How zones are coloured: the choice, and what the colours mean.

import { COLOURINGS, colourOf, colouring } from "./colours.js";
import { byId, el, setAttribute, setText, svg } from "./dom.js";
import { NONE } from "./format.js";

// The colours now in force, made once for all views that paint zones.
export class Palette {
  constructor(store) {
    this.current = null;
    const topics = ["run", "status", "evaluations", "colour", "round", "tree", "chosen"];
    store.subscribe((changed) => {
      if (store.run && topics.some((topic) => changed.has(topic))) this.current = colouring(store);
    });
  }
}

export class Legend {
  constructor(store, palette, tooltip) {
    this._store = store;
    this._palette = palette;
    this._choices = new Map();
    for (const key of Object.keys(COLOURINGS)) {
      const input = el("input", { type: "radio", name: "colour", value: key, id: `colour-${key}` });
      input.addEventListener("change", () => store.set("colour", key));
      const label = el("label", { for: `colour-${key}` });
      // What cannot be chosen says why, to a finger too.
      for (const kind of ["pointerenter", "click"]) {
        label.addEventListener(kind, ({ clientX, clientY }) => {
          if (input.disabled) tooltip.text([COLOURINGS[key].label(store), COLOURINGS[key].missing(store)], clientX, clientY);
        });
      }
      label.addEventListener("pointerleave", () => tooltip.hide());
      byId("colours").append(input, label);
      this._choices.set(key, { input, label });
    }
    byId("legend-plane").append(...squares(), svg("g", { id: "legend-zones" }));
    store.subscribe(() => store.run && this._draw());
  }

  _draw() {
    const store = this._store;
    for (const [key, { input, label }] of this._choices) {
      const why = COLOURINGS[key].missing?.(store) || "";
      setText(label, COLOURINGS[key].label(store));
      label.title = why ? "" : COLOURINGS[key].title(store);
      input.disabled = why !== "";
      input.checked = key === store.colour;
      if (why && key === store.colour) store.set("colour", "error");
    }
    const absent = [...this._choices.keys()].map((key) => COLOURINGS[key].missing?.(store)).filter(Boolean)[0] || "";
    setText(byId("colours-missing"), absent);
    const { kind, range, stops, places } = this._palette.current;
    setText(byId("legend-title"), kind.title(store));
    byId("legend").classList.toggle("plane", Boolean(kind.plane));
    if (kind.plane) return this._dots(places);
    const ends = kind.ends(store);
    setAttribute(byId("legend-bar"), "style", `background: linear-gradient(to right, ${stops.join(", ")})`);
    setText(byId("legend-low"), range ? `${kind.text(store, range[0])} ${ends[0]}` : NONE);
    setText(byId("legend-high"), range ? `${ends[1]} ${kind.text(store, range[1])}` : NONE);
  }

  // Where zones stand in the square of colours.
  _dots(places) {
    const at = (share) => (DOT + share * (SIDE - 2 * DOT)).toFixed(2);
    const dots = [...places.values()].filter(Boolean).map(([x, y]) => svg("circle", { cx: at(x), cy: at(1 - y), r: DOT }));
    byId("legend-zones").replaceChildren(...dots);
  }
}

const DOT = 0.3;
const SIDE = 14; // squares: as many as make steps that nobody sees at this size

function squares() {
  return Array.from({ length: SIDE * SIDE }, (_, i) => {
    const [x, y] = [i % SIDE, Math.floor(i / SIDE)];
    return svg("rect", { x, y, width: 1, height: 1, fill: colourOf([(x + 0.5) / SIDE, 1 - (y + 0.5) / SIDE]) });
  });
}
