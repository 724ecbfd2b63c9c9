// Which round's draws are shown: the latest, or one of those before by the slider.

import { byId, setAttribute, setText } from "./dom.js";

const KEPT = 300;
const AGAIN = 1000; // milliseconds, at least, between two questions for the same round
const ANSWER_WITHIN = 20_000; // ms
const STEP = 450; // milliseconds a round when played

export class Rounds {
  constructor(store) {
    this._store = store;
    this._slider = byId("round");
    this._cache = new Map(); // by round: its draws, and how many zones had reached it when they were asked for
    this._at = null; // the round that the store's draws are of, or will be
    this._asked = -Infinity;
    this._asking = null;
    this._again = 0;
    this._timer = 0;
    this._slider.addEventListener("input", () => this._go(Number(this._slider.value)));
    byId("latest").addEventListener("click", () => this._go(Infinity));
    byId("play").addEventListener("click", () => (this._timer ? this._stop() : this._play()));
    store.subscribe((changed) => {
      if (!store.run) return;
      if (changed.has("run")) this._cache.clear(); // another plan, or another life of the cloud
      if (["run", "status", "round"].some((topic) => changed.has(topic))) this._look();
      if (["run", "status", "round"].some((topic) => changed.has(topic))) this._show();
    });
  }

  _show() {
    const store = this._store;
    const last = store.lastRound;
    const at = store.round ?? last;
    setAttribute(this._slider, "max", Math.max(last, 1));
    this._slider.disabled = byId("play").disabled = last < 2;
    if (Number(this._slider.value) !== at) this._slider.value = at;
    const uneven = store.round === null && store.lowestRound < last ? `${store.lowestRound}–${last}` : at;
    setText(byId("round-said"), `round ${uneven}`);
    setAttribute(this._slider, "aria-valuetext", `round ${at} of ${store.run.rounds}`);
    const latest = store.round === null;
    setText(byId("latest"), store.status.finished ? "last" : "latest");
    setAttribute(byId("latest"), "aria-pressed", latest);
  }

  // The far right is the latest, which moves on with the run.
  _go(round) {
    this._store.set("round", round >= this._store.lastRound ? null : Math.max(1, round));
  }

  // Zones reach a round one after the other: it is asked for again as more of them have.
  _look() {
    const store = this._store;
    const round = store.round;
    const known = this._cache.get(round);
    if (round !== this._at) {
      this._at = round;
      this._asked = -Infinity;
      store.set("draws", known?.draws ?? null); // what stood there was another round's
    }
    clearTimeout(this._again);
    const reached = store.status.zones.filter((zone) => zone.round >= round).length;
    if (round === null || known?.reached >= reached || this._asking === round) return;
    const wait = this._asked + AGAIN - performance.now();
    if (wait > 0) this._again = setTimeout(() => this._look(), wait);
    else this._fetch(round, reached);
  }

  async _fetch(round, reached) {
    this._asked = performance.now();
    this._asking = round;
    let draws = null;
    try {
      const answer = await fetch(`/api/round/${round}`, { signal: AbortSignal.timeout(ANSWER_WITHIN) });
      if (answer.ok) draws = await answer.json();
    } catch {
      // The stream says that the cloud is away.
    }
    if (this._asking === round) this._asking = null;
    if (draws) this._cache.set(round, { draws, reached });
    if (this._cache.size > KEPT) this._cache.delete(this._cache.keys().next().value);
    if (round !== this._at) return;
    if (draws) this._store.set("draws", draws);
    this._look(); // after a failure, and if more zones have come
  }

  _play() {
    const store = this._store;
    if (store.round === null) this._go(1);
    setAttribute(byId("play"), "aria-pressed", true);
    setAttribute(byId("play"), "aria-label", "Pause");
    this._timer = setInterval(() => {
      this._go((store.round ?? store.lastRound) + 1);
      if (store.round === null) this._stop();
    }, STEP);
  }

  _stop() {
    clearInterval(this._timer);
    this._timer = 0;
    setAttribute(byId("play"), "aria-pressed", false);
    setAttribute(byId("play"), "aria-label", "Play the rounds");
  }
}
