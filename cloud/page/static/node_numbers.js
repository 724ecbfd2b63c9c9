// The numbers at a dendrogram's nodes: off all lines and off each other.

import { overlap } from "./labels.js";

const LETTER = 6; // pixels, at most, of a figure
const HEIGHT = 10;

// Where a number may stand, best first: [dx, dy, anchor] from its node. Beside the line to the parent there is none on the
// outer side, and within the node's own bracket there may be.
function spots(node, upright) {
  const outer = node.parent?.children[0] === node ? -1 : 1;
  const beside = (side) => [6 * side, -5, side < 0 ? "end" : "start"];
  if (upright) return [...(node.parent ? [beside(outer), beside(-outer)] : [[0, -8, "middle"]]), [0, 16, "middle"]];
  return [...(node.parent ? [[-6, outer < 0 ? -5 : 13, "end"], [-6, outer < 0 ? 13 : -5, "end"]] : []), [8, 4, "start"]];
}

function boxOf([x, y], [dx, dy, anchor], text) {
  const width = LETTER * text.length;
  const left = x + dx - { start: 0, middle: width / 2, end: width }[anchor];
  return [left, y + dy - HEIGHT, left + width, y + dy + 1];
}

const around = ([x, y], by) => [x - by, y - by, x + by, y + by];

// The two strokes of a node's line to its parent.
function strokes({ at: [u, v], parent }, upright) {
  const [x, y] = parent.at;
  const corner = upright ? [u, y] : [x, v];
  return [[corner, [x, y]], [corner, [u, v]]].map(([a, b]) => [Math.min(a[0], b[0]) - 1, Math.min(a[1], b[1]) - 1, Math.max(a[0], b[0]) + 1, Math.max(a[1], b[1]) + 1]);
}

// Write `said` = [[node, text, whether it must be there]] where there is room among `nodes`; others stay without: they speak
// when they are pointed at.
export function placeNumbers(nodes, said, upright, width) {
  const taken = nodes.flatMap((node) => [...(node.parent ? strokes(node, upright) : []), around(node.at, 4)]);
  for (const [node, text, must] of said) {
    const free = ([left, top, right, bottom]) => left > 0 && right < width && top > 0 && !taken.some((other) => overlap([left, top, right, bottom], other));
    const all = spots(node, upright);
    const spot = text && (all.find((each) => free(boxOf(node.at, each, text))) || (must && all[0]));
    node.label.textContent = spot ? text : "";
    if (!spot) continue;
    taken.push(boxOf(node.at, spot, text));
    for (const [name, value] of [["x", spot[0]], ["y", spot[1]], ["text-anchor", spot[2]]]) node.label.setAttribute(name, value);
  }
}
