// The dendrogram: leaves are zones, coloured as on the map; a node stands as high as its distance d_r. Upright where
// the leaves find room side by side, on its side otherwise.

import { byId, focusOnly, setAttribute, setText, svg } from "./dom.js";
import { chance, ends, number, plural, some } from "./format.js";
import { placeNumbers } from "./node_numbers.js";

const LEAF = 10.5; // pixels that a leaf needs
const NAMED = 24; // up to so many leaves every node says its distance, if there is room
export const NOTHING = 1e-9; // distances below it are sums of roundings: of equal histograms, say
const LEVEL = 0.06; // of the highest node: nodes no farther below their parents are as good as level with them

export class TreeView {
  constructor(store, palette, tooltip) {
    this._store = store;
    this._palette = palette;
    this._tooltip = tooltip;
    this._svg = byId("tree");
    this._box = byId("tree-box");
    this._nodes = this._joined = [];
    new ResizeObserver(() => this._resized()).observe(this._box);
    store.subscribe((changed) => this._update(changed));
    const leafOf = (event) => event.target.closest?.("[data-leaf]")?.dataset.leaf;
    this._svg.addEventListener("click", (event) => (leafOf(event) ? store.choose(leafOf(event)) : this._hover(event)));
    this._svg.addEventListener("pointermove", (event) => this._hover(event, leafOf(event)));
    this._svg.addEventListener("pointerleave", () => this._left());
    this._svg.addEventListener("focusin", (event) => this._focused(event.target));
    this._svg.addEventListener("focusout", () => this._left());
    this._svg.addEventListener("keydown", (event) => this._key(event));
  }

  _update(changed) {
    if (!this._store.run) return;
    if (changed.has("tree")) this._draw();
    if (changed.has("tree") || changed.has("round")) this._facts();
    if (["tree", "status", "evaluations", "round", "colour", "chosen"].some((topic) => changed.has(topic))) this._paint();
    if (changed.has("chosen") || changed.has("tree")) this._select();
  }

  _resized() {
    if (this._box.clientWidth === this._width || !this._store.run) return;
    this._draw();
    this._paint();
    this._select();
  }

  _draw() {
    const tree = this._store.tree;
    const held = this._svg.contains(document.activeElement);
    this._width = this._box.clientWidth;
    this._nodes = this._joined = [];
    byId("tree-none").hidden = tree !== null;
    byId("tree-card").classList.toggle("empty", tree === null);
    if (tree === null) return this._svg.replaceChildren();
    this._nodes = arranged(tree);
    this._joined = this._nodes.filter((node) => node.children);
    const leaves = tree.zones.length;
    const longest = ends(tree.zones.map((name) => name.length))[1];
    const upright = leaves * LEAF <= this._width - 60;
    this._upright = upright;
    const flat = upright && leaves * longest * 7 <= this._width - 80; // names need not be turned
    const names = flat ? 26 : Math.min(150, 16 + longest * 6.4);
    const frame = upright
      ? { left: 44, top: 16, across: this._width - 60, along: flat ? 230 : 240 }
      : { left: 14, top: 26, across: leaves * Math.max(14, Math.min(34, 300 / leaves)), along: this._width - names - 28 };
    this._svg.classList.toggle("crowded", upright && leaves > 80);
    const top = 1.04 * (ends(this._joined.map((node) => node.distance))[1] || 0);
    const pixel = (node) => {
      const across = ((node.across + 0.5) / leaves) * frame.across;
      const share = top > 0 ? node.distance / top : 0;
      const along = frame.along * (upright ? 1 - share : share);
      return upright ? [frame.left + across, frame.top + along] : [this._width - names - 14 - along, frame.top + across];
    };
    const height = frame.top + (upright ? frame.along + names : frame.across) + 8;
    this._svg.style.height = `${height}px`;
    setAttribute(this._svg, "viewBox", `0 0 ${this._width} ${height}`);
    for (const node of this._nodes) node.at = pixel(node);
    this._svg.replaceChildren(...this._axis(frame, top, names), ...this._branches(), ...this._joints(leaves), ...this._leaves(flat, frame.across / leaves, names));
    const root = this._nodes.at(-1).group; // of one zone alone, its leaf
    root.tabIndex = 0;
    if (held) root.focus({ preventScroll: true });
  }

  _facts() {
    const { tree, otherPlan } = this._store;
    if (tree === null) return;
    const plan = `plan ${tree.version}${otherPlan ? ", the present one (of earlier rounds none is kept)" : ""}`;
    setText(byId("tree-facts"), [plan, plural(tree.zones.length, "zone"), `L(T) = ${number(tree.loss < NOTHING ? 0 : tree.loss)}`, tree.reason].filter(Boolean).join(" · "));
  }

  _axis(frame, top, names) {
    const marks = [];
    for (const value of top > 0 ? ticks(top) : [0]) {
      const share = value / (top || 1);
      if (this._upright) {
        const y = frame.top + frame.along * (1 - share);
        marks.push(svg("line", { class: "grid", x1: frame.left, x2: this._width, y1: y, y2: y }), svg("text", { class: "tick", x: frame.left - 6, y: y + 4, "text-anchor": "end", text: number(value, 2) }));
      } else {
        const x = this._width - names - 14 - frame.along * share;
        marks.push(svg("line", { class: "grid", x1: x, x2: x, y1: 18, y2: frame.top + frame.across }), svg("text", { class: "tick", x, y: 12, "text-anchor": "middle", text: number(value, 2) }));
      }
    }
    return marks;
  }

  _branches() {
    return this._joined.flatMap((node) =>
      node.children.map((child) => {
        const [[x, y], [u, v]] = [node.at, child.at];
        child.line = svg("path", { class: "branch", d: this._upright ? `M${x} ${y}H${u}V${v}` : `M${x} ${y}V${v}H${u}` });
        return child.line;
      }),
    );
  }

  _joints(leaves) {
    return this._joined.map((node, i) => {
      const [x, y] = node.at;
      const dot = svg("circle", { class: "dot", r: leaves > 60 ? 2.5 : 3.5 });
      // A finger needs more than the dot.
      node.label = svg("text");
      node.group = svg("g", { class: "joint", role: "img", tabindex: -1, "data-node": i, transform: `translate(${x} ${y})` }, svg("circle", { class: "target", r: 9 }), dot, node.label);
      return node.group;
    });
  }

  _leaves(flat, wide, names) {
    return this._nodes.filter((node) => !node.children).map((node) => {
      const [x, y] = node.at;
      const turn = this._upright && !flat;
      const text = turn
        ? { transform: `translate(${x + 4} ${y + 12}) rotate(90)` }
        : this._upright ? { x, y: y + 20, "text-anchor": "middle" } : { x: x + 10, y: y + 4 };
      node.dot = svg("circle", { cx: x, cy: y, r: 4 });
      // What can be hit is all of the leaf's place, not the strokes of its letters.
      const room = this._upright ? { x: x - wide / 2, y: y - 8, width: wide, height: names + 8 } : { x: x - 8, y: y - wide / 2, width: names + 8, height: wide };
      const target = svg("rect", { class: "target", ...room });
      node.group = svg("g", { class: "leaf", role: "button", tabindex: -1, "aria-label": node.name, "data-leaf": node.name }, target, node.dot, svg("text", { ...text, text: node.name }));
      return node.group;
    });
  }

  _paint() {
    const palette = this._palette.current;
    for (const node of this._nodes || []) {
      const zone = !node.children && this._store.byName.get(node.name);
      if (zone) setAttribute(node.dot, "fill", palette.of(zone));
    }
  }

  // The chosen zone's way to the root, with the probability at each ancestor.
  _select() {
    const { tree, chosen } = this._store;
    const way = new Set();
    const leaf = (this._nodes || []).find((node) => node.name === chosen);
    for (let node = leaf; node; node = node.parent) way.add(node);
    const chances = new Map();
    let at = leaf?.parent;
    for (const { probability } of tree?.branches?.[chosen] || []) {
      if (at) chances.set(at, probability);
      at = at?.parent;
    }
    this._svg.classList.toggle("alone", Boolean(leaf));
    for (const node of this._nodes || []) {
      node.group.classList.toggle("way", way.has(node));
      node.line?.classList.toggle("way", way.has(node));
      node.chance = chances.get(node);
      if (!node.children) {
        setAttribute(node.group, "aria-pressed", node === leaf);
        continue;
      }
      setAttribute(node.group, "aria-label", `${this._lines(node).slice(0, -3).join(", ")}, ${plural(node.leaves.length, "zone")}: ${node.children.map((child) => some(child.leaves, 3)).join(" apart from ")}`);
    }
    const named = this._joined.length < NAMED;
    const said = this._joined.map((node) => (chances.has(node) ? [node, `p ${chance(node.chance)}`, true] : [node, named ? number(node.distance, 3) : "", false]));
    said.sort((a, b) => b[2] - a[2]); // the chances first
    // Lines of a large tree are too many to keep off; those on the way are thick.
    placeNumbers(this._nodes.filter((node) => named || way.has(node)), said, this._upright, this._width);
    if (leaf && !this._upright) this._reveal(leaf);
  }

  _reveal(leaf) {
    const box = this._box.getBoundingClientRect();
    const spot = leaf.group.getBoundingClientRect();
    if (spot.top < box.top || spot.bottom > box.bottom) this._box.scrollTop += spot.top - box.top - box.height / 2;
  }

  _hover(event, leaf) {
    const joint = event.target.closest?.(".joint");
    this._light(joint && this._nodeOf(joint));
    if (leaf && this._store.byName.has(leaf)) return this._tooltip.zone(leaf, event.clientX, event.clientY);
    if (!joint) return this._tooltip.hide();
    this._tooltip.text(this._lines(this._nodeOf(joint)), event.clientX, event.clientY);
  }

  // The bracket of the node that is asked: where several are nearly level, it tells which line is whose.
  _light(node) {
    for (const child of this._lit || []) child.line.classList.remove("lit");
    this._lit = node?.children;
    for (const child of this._lit || []) child.line.classList.add("lit");
  }

  _left() {
    this._light(null);
    this._tooltip.hide();
  }

  _nodeOf(joint) {
    return this._joined[Number(joint.dataset.node)];
  }

  // What a node means, the names of its two sides last.
  _lines(node) {
    const shared = node.chance === undefined ? [] : [`sharing probability of ${this._store.chosen}: p = ${chance(node.chance)}`];
    const [one, other] = node.children.map((child) => some(child.leaves, 6));
    return [`distance d_r = ${number(node.distance)}`, ...shared, one, "apart from", other];
  }

  _focused(mark) {
    if (!mark.matches(":focus-visible")) return;
    const box = mark.getBoundingClientRect();
    if (mark.dataset.leaf) {
      if (this._store.byName.has(mark.dataset.leaf)) this._tooltip.zone(mark.dataset.leaf, box.right, box.top);
      return;
    }
    this._light(this._nodeOf(mark));
    this._tooltip.text(this._lines(this._nodeOf(mark)), box.right, box.top);
  }

  // Towards the root, towards the larger side, or across: from node to node, from leaf to leaf.
  _key(event) {
    const node = this._nodes.find(({ group }) => group === event.target);
    if (!node) return;
    if (!node.children && (event.key === "Enter" || event.key === " ")) {
      event.preventDefault();
      return this._store.choose(node.name);
    }
    const way = (this._upright ? ["Left", "Right", "Up", "Down"] : ["Up", "Down", "Left", "Right"]).findIndex((to) => event.key === `Arrow${to}`);
    if (way < 0) return;
    event.preventDefault();
    const alike = this._nodes.filter((other) => !other.children === !node.children).sort((a, b) => a.across - b.across);
    const below = node.children?.toSorted((a, b) => b.leaves.length - a.leaves.length)[0];
    const at = alike.indexOf(node);
    const next = [alike[at - 1], alike[at + 1], node.parent, below][way];
    if (next) focusOnly(next.group, this._nodes.map(({ group }) => group));
  }
}

// Nodes with their place among the leaves, from the merges in SciPy's order.
export function arranged(tree) {
  const nodes = tree.zones.map((name) => ({ name, distance: 0, leaves: [name] }));
  tree.merges.forEach(([a, b], i) => {
    const children = [nodes[a], nodes[b]];
    nodes.push({ distance: tree.distances[i] < NOTHING ? 0 : tree.distances[i], children, leaves: [...nodes[a].leaves, ...nodes[b].leaves] });
    for (const child of children) child.parent = nodes.at(-1);
  });
  const level = LEVEL * ends(tree.distances)[1];
  let next = 0;
  const place = (node) => {
    if (!node.children) return (node.across = next++);
    const sides = node.children.map(place);
    node.across = (sides[0] + sides[1]) / 2;
    if (node.parent && node.parent.distance - node.distance < level) {
      // The parent's bar would lie on this one's: it starts near this one's end.
      const [inner, outer] = node.parent.children[0] === node ? [sides[1], sides[0]] : sides;
      node.across = inner + Math.max(-0.3, Math.min(0.3, (outer - inner) / 2));
    }
    return node.across;
  };
  place(nodes.at(-1));
  return nodes;
}

function ticks(top) {
  const rough = top / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((m) => m * power >= rough) || 10);
  return Array.from({ length: Math.floor(top / step) + 1 }, (_, i) => i * step);
}
