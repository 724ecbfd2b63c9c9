// The chosen zone in words and numbers; without one, all zones.

import { byId, el, replaceKept, setText } from "./dom.js";
import { devicesText, missingText } from "./devices.js";
import { NONE, bytes, count, ends, known, number, percent, plural, roundOf, some, withUnit } from "./format.js";
import { labelFact } from "./label_space.js";

const MOST = 12;

export class ZoneCard {
  constructor(store) {
    this._store = store;
    this._key = "";
    store.subscribe((changed) => {
      if (store.run && ["run", "status", "evaluations", "chosen", "round", "draws"].some((topic) => changed.has(topic))) this._draw();
    });
  }

  _draw() {
    const zone = this._store.chosen && this._store.byName.get(this._store.chosen);
    setText(byId("zone-title"), zone ? zone.name : "All zones");
    const facts = zone ? this._facts(zone) : this._overall();
    const peers = zone ? this._peers(zone) : this._strongest();
    const words = zone ? this._words(zone) : [];
    this._privacy(zone);
    const key = JSON.stringify([zone?.name, facts, peers, words]);
    if (key === this._key) return;
    this._key = key;
    byId("zone-facts").replaceChildren(...facts.map(([name, value, tone]) => el("div", { class: tone }, el("dt", { text: name }), el("dd", { text: value }))));
    setText(byId("zone-draw-title"), peers.title);
    replaceKept(byId("zone-draw"), ...peers.rows.map((row) => this._row(row)), ...(peers.more ? [el("li", { class: "more", text: peers.more })] : []));
    byId("zone-words").replaceChildren(...words.map(([tone, text]) => el("p", { class: tone, text })));
  }

  _facts(zone) {
    const store = this._store;
    const { metric } = store;
    const status = store.statusOf(zone);
    const kept = store.keptOf(zone);
    const error = store.errorOf(zone);
    const gain = store.gain(error, zone.alone);
    return [
      [`${metric?.name || "error"}, test`, withUnit(error, metric?.unit)],
      ["model kept", kept ? `of round ${count(kept[0])}` : NONE],
      ["gain over alone", percent(gain), tone(gain)],
      ["gain over before", percent(store.gain(error, zone.before))],
      ["state", status ? status.state : NONE],
      ["round", roundOf(status, store.run.rounds)],
      ["devices", devicesText(store, zone)],
      ["bytes sent", status?.bytes ? bytes(status.bytes) : NONE],
      labelFact(store, zone),
    ];
  }

  _overall() {
    const store = this._store;
    const gains = store.zones.map((zone) => store.gain(store.errorOf(zone), zone.alone)).filter(known);
    const draws = store.zones.filter((zone) => !store.drawAmongAll(zone).missing).map((zone) => Object.keys(store.drawAmongAll(zone).attention).length);
    const out = store.zones.map((zone) => Object.keys(store.drawAmongAll(zone).left_out).length);
    const errors = store.zones.map((zone) => store.errorOf(zone)).filter(known).sort((a, b) => a - b);
    const sum = (values) => values.reduce((a, b) => a + b, 0);
    const name = store.metric?.name || "error";
    return [
      [`${name}, lowest`, withUnit(errors[0], store.metric?.unit)],
      [`${name}, highest`, withUnit(errors.at(-1), store.metric?.unit)],
      ["better than alone", gains.length ? `${gains.filter((gain) => gain > 0).length} of ${gains.length}` : NONE],
      ["mean gain", gains.length ? percent(sum(gains) / gains.length) : NONE],
      ["zones drawn, in all", draws.length ? count(sum(draws)) : NONE],
      ["drew none", draws.length ? count(draws.filter((n) => n === 0).length) : NONE],
      ["left out", count(sum(out)), sum(out) ? "bad" : ""],
      ["zones", count(store.zones.length)],
    ];
  }

  _peers(zone) {
    const store = this._store;
    const { attention, left_out, missing } = store.drawOf(zone);
    if (missing) return limited(missing, []);
    const rows = Object.entries(attention)
      .sort((a, b) => b[1] - a[1])
      .map(([n, weight]) => ({ name: store.byNumber.get(Number(n))?.name || n, weight }));
    const out = Object.entries(left_out).map(([n, why]) => ({ name: store.byNumber.get(Number(n))?.name || n, why }));
    const round = store.round ?? store.statusOf(zone)?.round ?? 0;
    const title = rows.length + out.length ? `Drew ${plural(rows.length + out.length, "zone")} in round ${round}, by attention` : `Drew none in round ${round}`;
    return limited(title, [...out, ...rows]);
  }

  // Whose gradients counted most, over all zones.
  _strongest() {
    const store = this._store;
    const asked = new Map();
    for (const zone of store.zones) {
      for (const [n, weight] of Object.entries(store.drawAmongAll(zone).attention)) asked.set(n, (asked.get(n) || 0) + weight);
    }
    const rows = [...asked].sort((a, b) => b[1] - a[1]).map(([n, weight]) => ({ name: store.byNumber.get(Number(n))?.name || n, weight }));
    const most = rows[0]?.weight || 1;
    return limited("Learned from most this round, attention added up", rows.map((row) => ({ ...row, share: row.weight / most })));
  }

  _row({ name, weight, share, why }) {
    const button = el("button", { type: "button", class: "link", text: name, onclick: () => this._store.choose(name) });
    if (why !== undefined) return el("li", { class: "bad" }, button, el("span", { class: "why", text: `left out: ${why}` }));
    const bar = el("span", { class: "bar" }, el("span", { class: "fill" }));
    bar.firstChild.style.width = `${100 * (share ?? weight)}%`;
    return el("li", {}, button, bar, el("span", { class: "figure", text: number(weight, 3) }));
  }

  _words(zone) {
    const status = this._store.statusOf(zone);
    if (!status) return [];
    const unknown = this._store.round !== null && this._store.draws === null;
    const askers = this._store.zones.filter((other) => zone.number in this._store.drawAmongAll(other).attention).map((other) => other.name);
    const words = [];
    if (status.state === "left") words.push(["soft", known(status.round) ? `Left the run after round ${count(status.round)}.` : "Left the run; after which round is not known."]);
    words.push(["soft", askers.length ? `Asked by ${some(askers, 8)}.` : unknown ? "Who asked it is not known." : "Asked by nobody this round."]);
    if (status.overdue) words.push(["bad", `Overdue: ${status.overdue}`]);
    if (status.diverged) words.push(["bad", `Diverged: ${status.diverged}`]);
    for (const [kind, devices] of [["late", status.late], ["gone", status.gone]]) {
      for (const text of missingText(kind, devices)) words.push(["bad", text]);
    }
    return words;
  }

  _privacy(zone) {
    const { run, zones } = this._store;
    setText(byId("histogram-title"), zone ? `Labels of ${zone.name}` : "Labels of the zones");
    const spent = zone ? zone.epsilon : Math.max(0, ends(zones.map((each) => each.epsilon || 0))[1]);
    const budget = run.budget ?? run.epsilon; // by default it is that of one release
    const off = run.epsilon === "off" || run.epsilon === null;
    const said = spent ? `ε ${number(spent, 3)} of ${number(budget, 3)} spent` : `ε ${number(run.epsilon, 3)}, spent: not known here`;
    setText(byId("epsilon"), off ? "no noise (ε off)" : said);
    const covers = off
      ? "Histograms leave the devices as they are: the run file sets epsilon to “off”."
      : "Noised on each device before it leaves. ε covers the histogram alone: gradients carry no noise.";
    setText(byId("epsilon-note"), covers);
  }
}

const tone = (gain) => (known(gain) ? (gain > 0 ? "good" : gain < 0 ? "bad" : "") : "");

function limited(title, rows) {
  const more = rows.length > MOST ? `and ${rows.length - MOST} more` : "";
  return { title, rows: rows.slice(0, MOST), more };
}
