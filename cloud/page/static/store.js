// What is known of the run, and what the reader looks at. Views are told what changed, once a frame.
//
// Topics: run (all is new), status, series, evaluations, pooled, tree, events, link (the stream's state) and, of the reader's own
// making, chosen, colour, split and round (which rounds' draws are shown; null is the latest).

import { known } from "./format.js";

// Zones in these states reach no further round, or nobody knows when: no other waits for them, and no chart does.
const ABSENT = new Set(["expected", "left", "lost", "diverged"]);
const UNSTARTED = new Set(["gathering", "waiting"]);

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
    this.link = "connecting"; // live, reconnecting, finished, closed (finished, and the server is not reached)
    this.chosen = null; // a zone's name
    this.colour = "error";
    this.split = "test";
    this.round = null;
    this.draws = null; // of `round`, from /api/round; null as long as nobody has said
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
    for (const view of this._views) {
      try {
        view(changed);
      } catch (error) {
        console.error(error); // the others can be drawn all the same
      }
    }
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
    for (const series of Object.values(this.series)) for (const row of series.rounds) this._count(row, 1);
    if (this.round !== null) this.round = Math.min(this.round, this.run.rounds); // a link may say anything
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
    } else if (kind === "alone") {
      // Not as if all were new: what was fetched of rounds stays, for the server says no more after this.
      this.run.comparing = false;
      this.status.kept = message.kept;
      for (const zone of this.zones) zone.alone = message.zones[zone.name] ?? zone.alone;
      this.touch("status", "evaluations", "colour");
    }
    return true;
  }

  _applyStatus({ status, series = {}, pooled = [] }) {
    if (status.zones.some((zone) => !this.byNumber.has(zone.number))) return false;
    const common = this.commonRound;
    const zones = new Map(this.status.zones.map((zone) => [zone.number, zone]));
    for (const zone of status.zones) zones.set(zone.number, zone);
    this.status = { ...this.status, ...status, zones: byNumber([...zones.values()]) };
    for (const [name, rows] of Object.entries(series)) {
      const mine = (this.series[name] ||= { evaluations: [], rounds: [] });
      for (const row of rows.rounds) {
        const before = put(mine.rounds, row); // another plan has other distances
        if (before) this._count(before, -1);
        this._count(row, 1);
      }
      for (const row of rows.evaluations) put(mine.evaluations, row);
      if (rows.evaluations.length) this.touch("evaluations");
      this.touch("series");
    }
    for (const row of pooled) put(this.pooled, row);
    if (pooled.length) this.touch("pooled");
    if (this.commonRound !== common) this.touch("series"); // who is waited for has left
    this.touch("status");
    return true;
  }

  _count([round, drawn, homophily], times) {
    const mean = (this.means[round] ||= [0, 0, 0, 0]);
    mean[0] += times;
    mean[1] += times * drawn;
    if (known(homophily)) {
      mean[2] += times;
      mean[3] += times * homophily;
    }
  }

  set(name, value) {
    if (this[name] === value) return;
    this[name] = value;
    this.touch(name);
  }

  // Whether zones train alone at this moment, as far as anybody here can know.
  get comparing() {
    return this.run.comparing && this.link !== "closed";
  }

  choose(name) {
    this.set("chosen", name !== null && this.byName.has(name) && name !== this.chosen ? name : null);
  }

  // The last round that any zone has finished, and the last that all have who train.
  get lastRound() {
    return this.status.zones.reduce((last, zone) => Math.max(last, zone.round), 0);
  }

  get commonRound() {
    const train = this.status.zones.filter(({ state, round }) => !ABSENT.has(state) && !(UNSTARTED.has(state) && round === 0));
    return train.reduce((common, zone) => Math.min(common, zone.round), this.lastRound);
  }

  // The same with zones that are lost: no chart waits for them, yet the run is not done where they stand.
  get lowestRound() {
    const lost = this.status.zones.filter(({ state }) => state === "lost");
    return lost.reduce((lowest, zone) => Math.min(lowest, zone.round), this.commonRound);
  }

  // Of an earlier round no plan is kept: what stands beside it is by the present one, which may have come later.
  get otherPlan() {
    return this.round !== null && this.tree?.version > 1;
  }

  // {attention, left_out} by zone number: of the round that is looked at, or of each zone's last one; and if that is not
  // there, what is `missing`.
  drawOf(zone) {
    const status = this.statusOf(zone);
    const none = { attention: {}, left_out: {} };
    if (this.round === null) {
      if (status?.round) return { attention: status.attention, left_out: status.left_out };
      return { ...none, missing: this.run.live ? "Has finished no round yet" : "Whom it drew is not known" };
    }
    const found = this.draws?.[zone.name];
    if (found) return found;
    const short = known(status?.round) && status.round < this.round;
    const reached = status?.state === "left" ? "Had left before" : "Has not reached";
    return { ...none, missing: short ? `${reached} round ${this.round}` : `Whom it drew in round ${this.round} is not known` };
  }

  // The same among all zones: who has left draws nobody any more.
  drawAmongAll(zone) {
    const left = this.round === null && this.statusOf(zone)?.state === "left";
    return left ? { attention: {}, left_out: {}, missing: "Has left" } : this.drawOf(zone);
  }

  statusOf(zone) {
    const zones = this.status.zones;
    const direct = zones[zone.number]; // nearly always there
    return direct?.number === zone.number ? direct : zones.find((other) => other.number === zone.number);
  }

  // The row of the model that is kept as of the round looked at: the best on the validation samples until then. Of the
  // latest the status says it; rows of a long run are some of them.
  keptOf(zone) {
    const best = this.round === null ? this.statusOf(zone)?.best : null;
    if (best) return [best.round, best.validation, best.test, 1];
    const rows = this.series[zone.name]?.evaluations || [];
    const until = this.round ?? Infinity;
    let kept = null;
    for (const row of rows) if (row[0] <= until && (row[3] || kept === null)) kept = row;
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

// Put a row among those that are there, in order of their rounds; the one of the same round that made way for it.
function put(rows, row) {
  let [at, end] = [0, rows.length];
  if (end && rows[end - 1][0] < row[0]) at = end; // nearly always
  while (at < end) {
    const middle = (at + end) >> 1;
    if (rows[middle][0] < row[0]) at = middle + 1;
    else end = middle;
  }
  const again = rows[at]?.[0] === row[0];
  return rows.splice(at, again ? 1 : 0, row)[0];
}
