// The figures on top, the health of the run, and what happens.

import { byId, el, setText } from "./dom.js";
import { missingText, silent } from "./devices.js";
import { NONE, bytes, count, date, known, number, percent, plural, time, withUnit } from "./format.js";

const MOST = 60; // lines of trouble, and events, that are shown
const LONG = 8; // characters that a phone has room for in a figure

const SAID = new Set(["done", "left", "lost", "expected"]); // states that say already why nothing is heard of a zone

const entries = (zones, key) =>
  zones.flatMap((zone) => Object.entries(zone[key] || {}).map(([name, why]) => ({ zone: zone.name, name, why })));

export class Health {
  constructor(store) {
    this._store = store;
    this._troubles = "";
    this._day = "";
    store.subscribe((changed) => {
      if (changed.has("link") || changed.has("status") || changed.has("run")) this._link();
      if (!store.run) return;
      if (changed.has("run")) this._head();
      if (["run", "status", "pooled", "evaluations", "round", "link"].some((topic) => changed.has(topic))) this._figures();
      const day = new Date().toDateString(); // what was today is so no more after midnight
      if (["run", "status", "tree"].some((topic) => changed.has(topic))) this._health(day);
      if (changed.has("events") || day !== this._day) this._events();
      this._day = day;
    });
  }

  _link() {
    const { link, problem } = this._store;
    const node = byId("link");
    node.dataset.state = link;
    setText(byId("link-text"), { live: "live", reconnecting: "reconnecting", finished: "finished", closed: "finished, not connected" }[link] || "connecting");
    if (!this._store.run && problem) setText(byId("run-facts"), `${problem}: trying again`); // there is nothing else yet
    node.title = {
      live: "Updates arrive as they happen",
      reconnecting: `${problem}: trying again`,
      finished: "All rounds are done",
      closed: "All rounds are done, and the page's server is not reached: it has ended, or the way to it has. `sgfusion view` shows the results. Trying again",
    }[link] || "";
  }

  _head() {
    const { run } = this._store;
    document.title = `${run.name} · SGFusion`;
    setText(byId("run-name"), run.name);
    const facts = [run.title !== "SGFusion" && run.title, run.task, `seed ${run.seed}`, run.synthetic && "synthetic data"];
    setText(byId("run-facts"), facts.filter(Boolean).join(" · "));
    byId("run-facts").title = known(run.started) ? `Started ${date(run.started)}` : "";
    setText(byId("version"), `SGFusion ${run.version}`);
  }

  _figures() {
    const store = this._store;
    const { run, status, metric } = store;
    const last = store.lastRound;
    const lowest = store.lowestRound;
    const latest = lowest === last ? count(last) : `${lowest}–${last}`;
    figure("round", store.round === null ? latest : count(store.round), `${store.round === null ? "" : "looked at, "}of ${plural(run.rounds, "round")}`);
    byId("progress").value = run.rounds ? lowest / run.rounds : 0;
    const until = store.round ?? Infinity;
    const pooled = store.pooled.filter((row) => row[0] <= until).at(-1);
    const first = store.pooled[0];
    setText(byId("figure-error-name"), `${metric?.name || "Error"}, pooled`);
    // The models that zones keep, as on the map and in the table that ends a run; of an earlier round, those of then.
    const kept = store.round === null && known(status.kept?.test) ? status.kept : null;
    if (kept) {
      figure("error", withUnit(kept.test, metric?.unit), `test; before ${number(kept.before)}`);
    } else {
      const gained = pooled && first && pooled !== first ? `; before ${number(first[2])}` : "";
      figure("error", withUnit(pooled?.[2], metric?.unit), pooled ? `test, after round ${pooled[0]}${gained}` : "not evaluated yet");
    }
    byId("figure-error").title = kept ? "Of the models that zones keep: the best on validation samples." : "Of all zones' models after that round.";
    const gains = store.zones.map((zone) => store.gain(store.errorOf(zone), zone.alone)).filter(known);
    const better = gains.filter((gain) => gain > 0).length;
    const mean = gains.reduce((a, b) => a + b, 0) / gains.length;
    const together = kept && known(kept.alone) ? store.gain(kept.test, kept.alone) : null;
    const counted = `${known(together) ? "pooled" : "mean"}; better in ${better} of ${plural(gains.length, "zone")}`;
    figure("alone", gains.length ? percent(together ?? mean) : NONE, gains.length ? counted : `zones alone: ${store.comparing ? "being trained" : "unknown"}`);
    const there = status.zones.filter((zone) => zone.state !== "left"); // nobody waits for those who have left
    const [late, gone] = ["late", "gone"].map((key) => entries(there, key).length);
    const unheard = sum(there.filter(silent), "attending");
    const attending = sum(there, "attending") - unheard;
    const expected = there.reduce((all, zone) => all + (zone.expected || zone.attending), 0);
    figure("devices", run.live ? `${count(attending)} of ${count(expected)}` : count(sum(store.zones, "devices") || null), run.live ? `${late} late · ${gone} gone${unheard ? ` · ${count(unheard)} unheard of` : ""}` : `in ${plural(store.zones.length, "zone")}`);
    byId("figure-devices").classList.toggle("bad", late + gone + unheard > 0);
    setText(byId("figure-speed-name"), run.live ? "Rounds/min" : "Sent"); // how fast it was is not kept
    if (run.live) figure("speed", known(status.rounds_per_minute) ? number(status.rounds_per_minute, 3) : NONE, `${bytes(status.bytes)} sent`);
    else figure("speed", bytes(status.bytes), "weights and directions");
    const out = entries(there, "left_out").length;
    const reason = store.otherPlan ? "the present plan" : status.reason || "no peer left out";
    figure("plan", status.plan ? `${status.plan}` : NONE, out ? `${plural(out, "peer")} left out` : status.plan ? reason : "waiting for zones");
    byId("figure-plan").classList.toggle("bad", out > 0);
  }

  _health(day) {
    const store = this._store;
    const { status } = store;
    const name = (n) => store.byNumber.get(Number(n))?.name || n;
    const troubles = [];
    if (status.overdue) troubles.push(["run", `overdue: ${status.overdue}`]);
    for (const { zone, text } of status.waits || []) troubles.push([zone, text]);
    for (const zone of status.zones) {
      if (zone.state === "lost") troubles.push([zone.name, "lost: nothing is heard of its edge; who draws it waits deadlines.peer, once. On its host, sgfusion doctor says what to do"]);
      if (zone.state === "not answering") troubles.push([zone.name, "not answering: its edge is silent, frozen or cut off. On its host, sgfusion doctor says what to do"]);
      if (zone.overdue) troubles.push([zone.name, `overdue: ${zone.overdue}`]);
      if (zone.diverged) troubles.push([zone.name, `diverged: ${zone.diverged}`]);
    }
    for (const kind of ["gone", "late"]) {
      for (const zone of status.zones) for (const text of missingText(kind, zone[kind])) troubles.push([zone.name, text]);
    }
    const outNow = (zone) => (zone.state === "left" ? {} : zone.left_out);
    for (const zone of status.zones) {
      for (const [peer, why] of Object.entries(outNow(zone))) {
        const { rounds } = zone.left_out_so_far[peer] || { rounds: 1 };
        troubles.push([zone.name, `left out ${name(peer)} in its last round: ${why}${rounds > 1 ? ` (in ${plural(rounds, "round")} so far)` : ""}`]);
      }
    }
    for (const [reason, n] of Object.entries(status.refusals || {})) troubles.push(["cloud", `refused ${count(n)} × ${reason}`]);
    for (const { zone, name: reason, why } of entries(status.zones, "refusals")) troubles.push([zone, `refused ${count(why)} × ${reason}`]);
    // What is over comes last.
    for (const zone of status.zones) {
      const over = Object.entries(zone.left_out_so_far).filter(([peer]) => !(peer in outNow(zone)));
      for (const [peer, { rounds, last, why }] of over) troubles.push([zone.name, `left out ${name(peer)} in ${plural(rounds, "round")}, last in round ${count(last)}: ${why}`]);
    }
    this._states(status.zones);
    const key = JSON.stringify([troubles, store.plans, day]);
    if (key === this._troubles) return;
    this._troubles = key;
    const lines = troubles.slice(0, MOST).map(([who, text]) => el("li", {}, el("b", { text: who }), ` ${text}`));
    if (troubles.length > MOST) lines.push(el("li", { class: "soft", text: `and ${troubles.length - MOST} more` }));
    byId("troubles").replaceChildren(...(lines.length ? lines : [el("li", { class: "fine", text: "Nothing is late, gone, left out or refused." })]));
    setText(byId("troubles-count"), troubles.length ? String(troubles.length) : "");
    const plans = store.plans.toReversed().slice(0, 20);
    byId("plans").replaceChildren(
      ...plans.map((plan) => el("li", {}, el("b", { text: `plan ${plan.version}` }), ` over ${plural(plan.zones, "zone")}${plan.reason ? `: ${plan.reason}` : ""}`, known(plan.time) ? " " : null, known(plan.time) ? when(plan.time) : null)),
      ...(plans.length ? [] : [el("li", { class: "soft", text: "No plan yet." })]),
    );
  }

  _states(zones) {
    const states = new Map();
    for (const zone of zones) states.set(zone.state, (states.get(zone.state) || 0) + 1);
    const away = zones.filter((zone) => this._store.run.live && !zone.leased && !SAID.has(zone.state)).length;
    const text = [...states].map(([state, n]) => `${n} ${state}`).join(" · ");
    setText(byId("states"), `${plural(zones.length, "zone")}: ${text}${away ? ` · ${away} not heard of` : ""}`);
  }

  _events() {
    const events = this._store.events.slice(-MOST).reverse();
    const log = byId("events");
    const old = new Map([...log.children].map((line) => [line.dataset.key, line]));
    const lines = events.map((event) => {
      const key = `${event.time} ${event.text}`;
      const line = old.get(key) || el("li", { "data-key": key }, when(event.time), el("span", { text: event.text }));
      setText(line.firstChild, time(event.time));
      return line;
    });
    const { live, simulated } = this._store.run;
    const none = live ? "Nothing has happened yet." : simulated ? "None: a simulation has no events." : "None were kept with these results.";
    log.replaceChildren(...(lines.length ? lines : [el("li", { class: "soft", text: none })]));
  }
}

const when = (epoch) => el("time", { text: time(epoch), title: date(epoch) });

const sum = (zones, key) => zones.reduce((all, zone) => all + (zone[key] || 0), 0);

function figure(name, value, note) {
  const tile = byId(`figure-${name}`);
  setText(tile.querySelector(".value"), value);
  tile.querySelector(".value").classList.toggle("long", value.length > LONG);
  setText(tile.querySelector(".note"), note);
  tile.title = note;
}
