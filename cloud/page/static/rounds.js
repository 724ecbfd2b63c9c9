// Which round's draws are shown: the latest, or one of those before by the slider.

import { byId, setAttribute, setText } from "./dom.js";

const KEPT = 300;
const STEP = 450; // milliseconds a round when played

export class Rounds {
  constructor(store) {
    this._store = store;
    this._slider = byId("round");
    this._cache = new Map();
    this._wanted = null;
    this._timer = 0;
    this._slider.addEventListener("input", () => this._go(Number(this._slider.value)));
    byId("latest").addEventListener("click", () => this._go(Infinity));
    byId("play").addEventListener("click", () => (this._timer ? this._stop() : this._play()));
    store.subscribe((changed) => {
      if (!store.run) return;
      if (changed.has("run")) this._cache.clear(); // another plan, or another life of the cloud
      if (changed.has("run") || changed.has("round")) this._fetch();
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
    const uneven = store.round === null && store.commonRound < last ? `${store.commonRound}–${last}` : at;
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

  async _fetch() {
    const store = this._store;
    const round = (this._wanted = store.round);
    if (round === null) return store.set("draws", null);
    let draws = this._cache.get(round);
    if (!draws) {
      try {
        const answer = await fetch(`/api/round/${round}`);
        draws = answer.ok ? await answer.json() : {};
      } catch {
        draws = {}; // the stream says that the cloud is away, and loads all anew
      }
      if (round <= store.commonRound) this._cache.set(round, draws);
      if (this._cache.size > KEPT) this._cache.delete(this._cache.keys().next().value);
    }
    if (this._wanted === round) store.set("draws", draws);
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
