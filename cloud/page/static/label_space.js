// Zones by their label distributions: how far apart they are, where they stand among each other, and how labels are named.

import { NONE, known, number, withUnit } from "./format.js";

// Each class has a bin of its own around its number, and what is told of a model is no root of squares, which numbers have.
export function areClasses({ edges, metric }) {
  return edges.length > 1 && metric?.root === false && edges.every((edge, bin) => edge === bin - 0.5);
}

// A root mean square is in the unit of the labels; of the other measures nobody knows: that of an accuracy is none.
export const labelUnit = ({ metric }) => (metric?.root ? metric.unit : "");

export function binName(store, bin) {
  if (areClasses(store)) return `class ${bin}`;
  return store.edges.length > bin + 1 ? `${number(store.edges[bin])} to ${number(store.edges[bin + 1])}` : `bin ${bin + 1}`;
}

// [name, value] for people: the mean of numbers, the commonest of classes.
export function labelFact(store, zone) {
  if (!areClasses(store)) return ["mean label", withUnit(store.meanLabel(zone), store.edges.length ? labelUnit(store) : "")];
  const shares = zone.histogram || [];
  const most = shares.indexOf(shares.reduce((a, b) => Math.max(a, b), -Infinity));
  return ["commonest label", most < 0 ? NONE : binName(store, most)];
}

// The distances d(Y_z, Y_z') that the tree was made of. `between(a, b)`, by names, is null where one is no leaf of it.
export class LabelSpace {
  constructor({ tree, byName }) {
    this._apart = tree?.apart || [];
    this._leaves = (tree?.zones || []).filter((name) => byName.has(name)).map((name) => byName.get(name));
    this._leaf = new Map((tree?.zones || []).map((name, leaf) => [name, leaf]));
  }

  has(name) {
    return this._leaf.has(name);
  }

  between(a, b) {
    if (!this.has(a) || !this.has(b)) return null;
    const [low, high] = [this._leaf.get(a), this._leaf.get(b)].sort((x, y) => x - y);
    return low === high ? 0 : this._apart[high][low];
  }

  // {zone, distance} of the other zone that is most alike; null if there is none.
  nearest(name) {
    let best = null;
    for (const zone of this._leaves) {
      const distance = zone.name === name ? null : this.between(name, zone.name);
      if (known(distance) && (best === null || distance < best.distance)) best = { zone, distance };
    }
    return best;
  }

  // From 0 to 1 twice, by the scaling of the distances (cloud/page/layout.py); null for who is no leaf. Zones with one
  // distribution have one place, even where the map spreads them to be told apart.
  place(name) {
    const first = this._leaves.find((zone) => (this.between(name, zone.name) ?? 1) < SAME);
    return first ? first.at.map((value) => (value - MARGIN) / (1 - 2 * MARGIN)) : null;
  }
}

const MARGIN = 0.06; // of layout.py
const SAME = 1e-9; // the same shares in another order of sums are that far apart at most
