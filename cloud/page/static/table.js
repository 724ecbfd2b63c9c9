// All zones in a table: sortable, and walked with the arrow keys.

import { byId, el, focusOnly, setAttribute, setText } from "./dom.js";
import { devicesText, silent } from "./devices.js";
import { NONE, count, known, number, percent, withUnit } from "./format.js";

const drawText = (store, zone) => {
  const { attention, left_out } = store.drawOf(zone);
  const drawn = Object.entries(attention).sort((a, b) => b[1] - a[1]);
  const name = (n) => store.byNumber.get(Number(n))?.name || n;
  const parts = drawn.slice(0, 3).map(([n, weight]) => `${name(n)} ${number(weight, 2)}`);
  if (drawn.length > 3) parts.push(`${drawn.length - 3} more`);
  const out = Object.keys(left_out).length;
  if (out) parts.push(`${out} left out`);
  return parts.join(", ") || NONE;
};

// key, heading, value to sort by, text, class
const COLUMNS = [
  ["name", "Zone", (_, zone) => zone.name, (_, zone) => zone.name],
  ["state", "State", (s, zone) => s.statusOf(zone)?.state || "", (s, zone) => s.statusOf(zone)?.state || NONE],
  ["round", "Round", (s, zone) => s.statusOf(zone)?.round ?? -1, (s, zone) => count(s.statusOf(zone)?.round), "n"],
  ["devices", "Devices", (s, zone) => s.statusOf(zone)?.attending ?? zone.devices, devicesText, "n wide"],
  ["error", "", (s, zone) => s.errorOf(zone), (s, zone) => withUnit(s.errorOf(zone), ""), "n"],
  ["alone", "Over alone", (s, zone) => s.gain(s.errorOf(zone), zone.alone), (s, zone) => percent(s.gain(s.errorOf(zone), zone.alone)), "n"],
  ["before", "Over before", (s, zone) => s.gain(s.errorOf(zone), zone.before), (s, zone) => percent(s.gain(s.errorOf(zone), zone.before)), "n wide"],
  ["kept", "Round kept", (s, zone) => s.keptOf(zone)?.[0], (s, zone) => count(s.keptOf(zone)?.[0]), "n wide"],
  ["draw", "", (s, zone) => Object.keys(s.drawOf(zone).attention).length, drawText, "wide draw"],
];

const [STATE, DEVICES] = [0, 2]; // among the cells after the name

export class ZoneTable {
  constructor(store, palette) {
    this._store = store;
    this._palette = palette;
    this._body = byId("zones-body");
    this._rows = new Map();
    this._sort = { key: "name", down: false };
    this._heads();
    this._body.addEventListener("click", (event) => {
      const row = event.target.closest("tr");
      if (row) store.choose(row.dataset.zone);
    });
    this._body.addEventListener("keydown", (event) => this._key(event));
    byId("zones-filter").addEventListener("input", () => this._order());
    store.subscribe((changed) => this._update(changed));
  }

  _heads() {
    this._buttons = new Map();
    const heads = COLUMNS.map(([key, heading, , , kind]) => {
      const button = el("button", { type: "button", text: heading, onclick: () => this._sortBy(key) });
      const head = el("th", { scope: "col", class: kind }, button);
      this._buttons.set(key, head);
      return head;
    });
    byId("zones-head").replaceChildren(el("tr", {}, ...heads));
  }

  _update(changed) {
    const store = this._store;
    if (!store.run) return;
    if (changed.has("run")) this._rebuild();
    if (changed.has("run") || changed.has("round")) setText(this._buttons.get("draw").firstChild, store.round === null ? "Last draw, by attention" : `Draw of round ${count(store.round)}, by attention`);
    if (["run", "status", "evaluations", "round", "draws", "colour", "tree", "chosen"].some((topic) => changed.has(topic))) {
      for (const zone of store.zones) this._fill(zone);
      if (this._sort.key !== "name" || changed.has("run")) this._order();
    }
    if (changed.has("chosen") || changed.has("run")) this._select();
  }

  _rebuild() {
    const { zones, metric } = this._store;
    setText(this._buttons.get("error").firstChild, metric ? `${metric.name}${metric.unit ? ` (${metric.unit})` : ""}` : "Error");
    const names = zones.map((zone) => zone.name).join("\n");
    if (names === this._names) return;
    this._names = names;
    this._rows.clear();
    for (const zone of zones) {
      const swatch = el("span", { class: "swatch" });
      const button = el("button", { type: "button", class: "link", tabindex: -1, text: zone.name, "aria-pressed": "false" });
      const cells = COLUMNS.slice(1).map(([, , , , kind]) => el("td", { class: kind }));
      const row = el("tr", { "data-zone": zone.name }, el("th", { scope: "row" }, swatch, button), ...cells);
      this._rows.set(zone.name, { row, swatch, button, cells });
    }
  }

  _fill(zone) {
    const { swatch, cells } = this._rows.get(zone.name);
    const store = this._store;
    const colour = this._palette.current.of(zone);
    if (swatch.dataset.colour !== colour) {
      swatch.dataset.colour = colour;
      swatch.style.background = colour;
    }
    COLUMNS.slice(1).forEach(([key, , , text], i) => {
      const said = text(store, zone);
      setText(cells[i], said);
      if (key === "draw") setAttribute(cells[i], "title", said); // a narrow column cuts it
      if (key === "alone") {
        const gain = store.gain(store.errorOf(zone), zone.alone);
        cells[i].classList.toggle("good", known(gain) && gain > 0);
        cells[i].classList.toggle("bad", known(gain) && gain < 0);
      }
    });
    const status = store.statusOf(zone);
    cells[STATE].classList.toggle("troubled", Boolean(status?.overdue || status?.diverged || silent(status)));
    cells[DEVICES].classList.toggle("troubled", Boolean(silent(status) || Object.keys(status?.gone || {}).length + Object.keys(status?.late || {}).length));
  }

  _sortBy(key) {
    this._sort = { key, down: this._sort.key === key ? !this._sort.down : false };
    this._order();
  }

  _order() {
    const { key, down } = this._sort;
    for (const [name, head] of this._buttons) {
      if (name === key) head.setAttribute("aria-sort", down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    }
    const value = COLUMNS.find(([name]) => name === key)[2];
    const wanted = byId("zones-filter").value.trim().toLowerCase();
    const zones = this._store.zones.filter((zone) => zone.name.toLowerCase().includes(wanted));
    const values = new Map(zones.map((zone) => [zone.name, value(this._store, zone)]));
    zones.sort((a, b) => compare(values.get(a.name), values.get(b.name), down) || a.name.localeCompare(b.name));
    const rows = zones.map((zone) => this._rows.get(zone.name).row);
    setText(byId("zones-count"), wanted ? `${zones.length} of ${this._store.zones.length}` : `${zones.length}`);
    this._stop(zones.map((zone) => zone.name));
    const now = this._body.children;
    if (rows.length === now.length && rows.every((row, i) => row === now[i])) return;
    const focused = document.activeElement;
    this._body.replaceChildren(...rows);
    if (focused && focused !== document.activeElement && this._body.contains(focused)) focused.focus({ preventScroll: true });
  }

  // One of the rows that are shown is the tab stop: the one that was, or else the chosen zone's, or the first.
  _stop(names) {
    const shown = new Set(names);
    const was = [...this._rows].find(([, { button }]) => button.tabIndex === 0)?.[0];
    const stop = [was, this._store.chosen, names[0]].find((name) => shown.has(name));
    for (const [name, { button }] of this._rows) setAttribute(button, "tabindex", name === stop ? 0 : -1);
  }

  _select() {
    for (const [name, { row, button }] of this._rows) {
      const chosen = name === this._store.chosen;
      row.classList.toggle("chosen", chosen);
      button.setAttribute("aria-pressed", String(chosen));
    }
  }

  _key(event) {
    const rows = [...this._body.children];
    const at = rows.indexOf(event.target.closest("tr"));
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 }[event.key];
    if (to === undefined || !rows[to]) return;
    event.preventDefault();
    const buttons = [...this._rows.values()].map(({ button }) => button);
    focusOnly(this._rows.get(rows[to].dataset.zone).button, buttons);
  }
}

// Unknown values come last, whatever the order.
function compare(a, b, down) {
  const [missingA, missingB] = [a, b].map((value) => value === null || value === undefined);
  if (missingA || missingB) return missingA - missingB;
  const order = typeof a === "string" ? a.localeCompare(b) : a - b;
  return down ? -order : order;
}
