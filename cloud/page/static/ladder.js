// The probabilistic dendrogram of the chosen zone: its ancestors from its leaf's parent up to the root, with the chance
// that it draws each zone of the branch that it meets there.

import { NOTHING } from "./dendrogram.js";
import { byId, el, replaceKept, setText } from "./dom.js";
import { chance, ends, number, plural } from "./format.js";

const SHOWN = 8;
const MOST = 16;
const BY_TREE = new Set(["hrg", "chi"]);
const OTHERS = {
  "top-k": "the zones nearest in label distribution, every round",
  neighbours: "its geographic neighbours, every round",
  none: "no zones at all",
  random: "zones at random, all with the same chance",
  all: "every other zone, every round",
};

export class Ladder {
  constructor(store) {
    this._store = store;
    this._list = byId("ladder");
    this._open = new Set();
    store.subscribe((changed) => {
      if (!store.run) return;
      if (changed.has("chosen")) this._open.clear();
      if (changed.has("tree") || changed.has("chosen") || changed.has("run")) this._draw();
      else if (changed.has("round")) this._say();
    });
  }

  _draw() {
    const { chosen, tree, run } = this._store;
    const branches = (chosen && tree?.branches?.[chosen]) || [];
    setText(byId("ladder-title"), chosen ? `Whom ${chosen} draws` : "Whom a zone draws");
    this._say();
    replaceKept(this._list, ...branches.map((branch, i) => this._rung(branch, i, branches)));
    this._list.hidden = !branches.length;
    this._asked(chosen === null && BY_TREE.has(run.sampler) ? tree : null);
  }

  _say() {
    const { chosen, tree, run, otherPlan } = this._store;
    const branches = (chosen && tree?.branches?.[chosen]) || [];
    setText(byId("ladder-intro"), `${otherPlan ? "By the present plan. " : ""}${this._intro(chosen, tree, run, branches)}`);
  }

  _intro(chosen, tree, run, branches) {
    if (!tree) return "Shown once the cloud has made a plan.";
    if (!chosen) return "Choose a zone to see its probabilistic dendrogram: the chance that it draws each other zone. Below, how many zones ask each one in a round, by their chances added up.";
    const away = BY_TREE.has(run.sampler) ? "" : `This run does not draw by the tree: each zone asks ${OTHERS[run.sampler] || "others"}. `;
    if (!branches.length) return `${away}${chosen} has no probabilistic dendrogram in plan ${tree.version}.`;
    if (away) return `${away}The tree would give these probabilities.`;
    if (run.sampler === "chi") return "It draws a fixed number of zones a round; these are their weights. From the nearest branch to the root:";
    const mean = branches.reduce((sum, branch) => sum + branch.probability * branch.zones.length, 0);
    return `Each zone of a branch is drawn with the branch's probability, ${number(mean, 3)} zones a round on average. From the nearest branch to the root:`;
  }

  // Whom others are likely to ask: the columns of p(z, z') added up.
  _asked(tree) {
    const sums = new Map();
    for (const branches of Object.values(tree?.branches || {})) {
      for (const { probability, zones } of branches) for (const name of zones) sums.set(name, (sums.get(name) || 0) + probability);
    }
    const rows = [...sums].sort((a, b) => b[1] - a[1]).slice(0, MOST);
    byId("asked").hidden = !rows.length;
    replaceKept(
      byId("asked"),
      ...rows.map(([name, sum]) => {
        const bar = el("span", { class: "bar" }, el("span", { class: "fill" }));
        bar.firstChild.style.width = `${(100 * sum) / rows[0][1]}%`;
        return el("li", {}, el("button", { type: "button", class: "link", text: name, onclick: () => this._store.choose(name) }), bar, el("span", { class: "figure", text: number(sum, 3) }));
      }),
    );
  }

  _rung(branch, i, branches) {
    const most = Math.max(ends(branches.map((other) => other.probability))[1], 1e-12);
    const open = this._open.has(i) || branch.zones.length <= SHOWN + 1;
    const names = open ? branch.zones : branch.zones.slice(0, SHOWN);
    const chips = names.map((name) => el("button", { class: "chip", type: "button", text: name, onclick: () => this._store.choose(name) }));
    if (!open) {
      const more = el("button", { class: "chip more", type: "button", text: `${branch.zones.length - SHOWN} more` });
      more.addEventListener("click", () => {
        this._open.add(i);
        this._draw();
      });
      chips.push(more);
    }
    const bar = el("span", { class: "bar" }, el("span", { class: "fill" }));
    bar.firstChild.style.width = `${(100 * branch.probability) / most}%`;
    const apart = branch.distance < NOTHING ? 0 : branch.distance;
    const title = `distance ${number(apart)}, ${plural(branch.zones.length, "zone")}`;
    return el(
      "li",
      { title },
      el("div", { class: "chance" }, bar, el("span", { class: "p", text: `p ${chance(branch.probability)}` }), el("span", { class: "d", text: `d ${number(apart, 3)}` })),
      el("div", { class: "chips" }, ...chips),
    );
  }
}
