// What is known of the run, and what the reader looks at. Views are told what changed, once a frame.
//
// Topics: run (all is new), status, series, evaluations, pooled, tree, events, link (the stream's state) and, of the reader's own
// making, chosen, colour, split and round (which rounds' draws are shown; null is the latest).

import { known } from "./format.js";

export class Store {
  constructor() {
    this.run = this.metric = this.tree = this.status = null;
    this.edges = [];
    this.zones = []; // in order of their numbers
    this.series = {};
    this.pooled = [];
    this.plans = [];
    this.events = [];
    this.means = []; // by round: [zones, drawn, zones with a homophily, homophily]
    this.link = "connecting"; // live, reconnecting, finished
    this.chosen = null; // a zone's name
    this.colour = "error";
    this.split = "test";
    this.round = null;
    this.draws = null; // of `round`, from /api/round
    this._views = [];
    this._changed = new Set();
    this._frame = 0;
  }

  // `view(changed)`: called in a frame of its own; hidden pages have no frames, and catch up when they are seen.
  subscribe(view) {
    this._views.push(view);
  }

  touch(...topics) {
    for (const topic of topics) this._changed.add(topic);
    if (!this._frame) this._frame = requestAnimationFrame(() => this._show());
  }

  _show() {
    this._frame = 0;
    const changed = this._changed;
    this._changed = new Set();
    for (const view of this._views) view(changed);
  }

  load(answer) {
    this.run = answer.run;
    this.metric = answer.metric;
    this.edges = answer.edges || [];
    this._know(answer.zones);
    this.tree = answer.tree;
    this.plans = answer.plans || [];
    this.status = answer.status;
    this.status.zones = byNumber(this.status.zones);
    this.series = answer.series || {};
    this.pooled = answer.pooled || [];
    this.events = answer.events || [];
    this.means = [];
    for (const series of Object.values(this.series)) this._count(series.rounds);
    if (this.chosen !== null && !this.byName.has(this.chosen)) this.chosen = null;
    this.touch("run", "status", "series", "evaluations", "pooled", "tree", "events", "chosen", "round", "colour");
  }

  _know(zones) {
    this.zones = byNumber(zones);
    this.byName = new Map(this.zones.map((zone) => [zone.name, zone]));
    this.byNumber = new Map(this.zones.map((zone) => [zone.number, zone]));
  }

  // A message of the stream. False if it speaks of what we do not know: all must be fetched anew.
  apply(kind, message) {
    if (kind === "status") return this._applyStatus(message);
    if (kind === "plan") {
      this.tree = message.tree;
      this.plans = message.plans;
      this.metric = message.metric; // unknown before the first zone has reported its labels
      this.edges = message.edges;
      this._know(message.zones);
      this.touch("tree", "run", "status");
    } else if (kind === "news") {
      // What came with /api/run may be said again.
      const seen = new Set(this.events.map(({ time, text }) => `${time} ${text}`));
      const fresh = message.events.filter(({ time, text }) => !seen.has(`${time} ${text}`));
      this.events = this.events.concat(fresh).slice(-500);
      this.touch("events");
    }
    return true;
  }

  _applyStatus({ status, series = {}, pooled = [] }) {
    if (status.zones.some((zone) => !this.byNumber.has(zone.number))) return false;
    const zones = new Map(this.status.zones.map((zone) => [zone.number, zone]));
    for (const zone of status.zones) zones.set(zone.number, zone);
    this.status = { ...this.status, ...status, zones: byNumber([...zones.values()]) };
    for (const [name, rows] of Object.entries(series)) {
      const mine = (this.series[name] ||= { evaluations: [], rounds: [] });
      this._count(added(mine.rounds, rows.rounds));
      if (added(mine.evaluations, rows.evaluations).length) this.touch("evaluations");
      this.touch("series");
    }
    if (added(this.pooled, pooled).length) this.touch("pooled");
    this.touch("status");
    return true;
  }

  _count(rounds) {
    for (const [round, drawn, homophily] of rounds) {
      const mean = (this.means[round] ||= [0, 0, 0, 0]);
      mean[0] += 1;
      mean[1] += drawn;
      if (known(homophily)) {
        mean[2] += 1;
        mean[3] += homophily;
      }
    }
  }

  set(name, value) {
    if (this[name] === value) return;
    this[name] = value;
    this.touch(name);
  }

  choose(name) {
    this.set("chosen", name !== null && this.byName.has(name) && name !== this.chosen ? name : null);
  }

  // The last round that any zone has finished, and the last that all have.
  get lastRound() {
    return Math.max(0, ...this.status.zones.map((zone) => zone.round));
  }

  get commonRound() {
    return Math.min(this.lastRound, ...this.status.zones.map((zone) => zone.round));
  }

  // {attention, left_out} by zone number: of the round that is looked at, or of each zone's last one.
  drawOf(zone) {
    if (this.round !== null) return this.draws?.[zone.name] || { attention: {}, left_out: {} };
    const status = this.statusOf(zone);
    return { attention: status?.attention || {}, left_out: status?.left_out || {} };
  }

  statusOf(zone) {
    const zones = this.status.zones;
    const direct = zones[zone.number]; // nearly always there
    return direct?.number === zone.number ? direct : zones.find((other) => other.number === zone.number);
  }

  // The row of the model that is kept as of the round looked at: the best on the validation samples until then.
  keptOf(zone) {
    const rows = this.series[zone.name]?.evaluations || [];
    const until = this.round ?? Infinity;
    let kept = null;
    for (const row of rows) if (row[0] <= until && (row[3] || kept === null)) kept = row;
    if (kept === null && this.round === null) {
      const best = this.statusOf(zone)?.best;
      if (best) kept = [best.round, best.validation, best.test, 1];
    }
    return kept;
  }

  errorOf(zone) {
    return this.keptOf(zone)?.[2] ?? null;
  }

  // How much better than `reference`, as a share of it; null if either is unknown.
  gain(value, reference) {
    if (!known(value) || !known(reference) || reference === 0) return null;
    const share = (reference - value) / Math.abs(reference);
    return this.metric?.lower_is_better === false ? -share : share;
  }

  // The mean label by the noised histogram; its bins' numbers where edges are unknown.
  meanLabel(zone) {
    const histogram = zone.histogram;
    if (!histogram) return null;
    let mass = 0;
    let sum = 0;
    histogram.forEach((share, bin) => {
      mass += share;
      sum += share * this.middle(bin);
    });
    return mass > 0 ? sum / mass : null;
  }

  middle(bin) {
    return this.edges.length > bin + 1 ? (this.edges[bin] + this.edges[bin + 1]) / 2 : bin + 1;
  }
}

const byNumber = (zones) => [...zones].sort((a, b) => a.number - b.number);

// Put rows among those that are there, in order of their rounds; the ones of rounds that were not.
function added(rows, more = []) {
  return more.filter((row) => {
    let at = rows.length;
    while (at > 0 && rows[at - 1][0] > row[0]) at -= 1;
    const again = at > 0 && rows[at - 1][0] === row[0];
    rows.splice(again ? at - 1 : at, again ? 1 : 0, row);
    return !again;
  });
}
