// One small card that follows the pointer or the focus.

import { byId, el } from "./dom.js";
import { devicesText } from "./devices.js";
import { number, percent, plural, roundOf, withUnit } from "./format.js";

const TOPICS = ["run", "status", "evaluations", "round", "draws"];

export class Tooltip {
  constructor(store) {
    this._store = store;
    this._card = byId("tooltip");
    this._of = null; // the zone that is shown, and where: a pointer that rests does not ask again
    store.subscribe((changed) => {
      if (this._of && TOPICS.some((topic) => changed.has(topic))) this._again();
    });
  }

  text(lines, x, y) {
    this._of = null;
    const [first, ...rest] = lines;
    this._show([el("strong", { text: first }), ...rest.map((text) => el("span", { text }))], x, y);
  }

  zone(name, x, y) {
    const store = this._store;
    const zone = store.byName.get(name);
    const status = store.statusOf(zone);
    const { attention, left_out, missing } = store.drawOf(zone);
    const error = store.errorOf(zone);
    const facts = [
      [store.metric?.name || "error", withUnit(error, store.metric?.unit)],
      ["over alone", percent(store.gain(error, zone.alone)), zone.alone],
      ["over before", percent(store.gain(error, zone.before)), zone.before],
      ["state", status?.state, status],
      ["round", roundOf(status, store.run.rounds), status],
      ["devices", devicesText(store, zone)],
    ].filter((fact) => fact.length < 3 || fact[2]);
    const list = el("dl", {}, ...facts.flatMap(([key, value]) => [el("dt", { text: key }), el("dd", { text: value })]));
    const drawn = Object.entries(attention).sort((a, b) => b[1] - a[1]);
    const names = drawn.slice(0, 4).map(([n, weight]) => `${store.byNumber.get(Number(n))?.name} ${number(weight, 2)}`);
    const more = drawn.length > 4 ? ` and ${drawn.length - 4} more` : "";
    const gone = Object.keys(left_out).length;
    const lines = [
      el("strong", { text: name }),
      list,
      el("span", { text: drawn.length ? `drew ${names.join(", ")}${more}` : (missing?.toLowerCase() ?? "drew none") }),
    ];
    if (gone) lines.push(el("span", { class: "bad", text: `${plural(gone, "peer")} left out` }));
    this._of = [name, x, y];
    this._show(lines, x, y);
  }

  _again() {
    if (this._store.byName.has(this._of[0])) this.zone(...this._of);
    else this.hide();
  }

  _show(lines, x, y) {
    const card = this._card;
    card.replaceChildren(...lines);
    card.hidden = false;
    const { offsetWidth: width, offsetHeight: height } = card;
    const left = x + 14 + width > window.innerWidth ? x - width - 10 : x + 14;
    const top = y + 14 + height > window.innerHeight ? y - height - 10 : y + 14;
    card.style.transform = `translate(${Math.max(4, left)}px, ${Math.max(4, top)}px)`;
  }

  hide() {
    this._of = null;
    this._card.hidden = true;
  }
}
