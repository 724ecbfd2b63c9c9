// Names beside the zones, as many as find room; the first ones first.

import { setAttribute, svg } from "./dom.js";

const HEIGHT = 14;

let ruler = null;
const widths = new Map();

function widthOf(text) {
  if (!widths.has(text)) {
    if (!ruler) {
      ruler = document.createElement("canvas").getContext("2d");
      ruler.font = `12px ${getComputedStyle(document.body).fontFamily}`;
    }
    widths.set(text, ruler.measureText(text).width + 2);
  }
  return widths.get(text);
}

export const overlap = (a, b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];

// `must` names at the start may lie over other zones' marks, not over each other. The boxes of all that are there.
export function placeLabels(layer, zones, where, radius, [width, height], must, reserved) {
  const taken = zones.map((zone) => {
    const [[x, y], r] = [where.get(zone.number), Math.max(2, radius.get(zone.number) - 1)];
    return [x - r, y - r, x + r, y + r];
  });
  const marks = taken.length;
  taken.push([width - 44, 0, width, 108], ...reserved); // the buttons', and what else lies over the map
  const before = taken.length;
  const air = zones.length > 40 ? 7 : 0; // a crowd of names hides what it names
  const old = new Map([...layer.children].map((label) => [label.dataset.zone, label]));
  zones.forEach((zone, rank) => {
    const [[x, y], r, w] = [where.get(zone.number), radius.get(zone.number), widthOf(zone.name)];
    const spots = [
      ["middle", x, y + r + HEIGHT - 2],
      ["middle", x, y - r - 5],
      ["start", x + r + 4, y + 4],
      ["end", x - r - 4, y + 4],
    ];
    for (const [anchor, u, v] of spots) {
      const left = { middle: u - w / 2, start: u, end: u - w }[anchor];
      const box = [left - air, v - HEIGHT + 4 - air / 2, left + w + air, v + 3 + air / 2];
      if (box[0] < 2 || box[1] < 2 || box[2] > width - 2 || box[3] > height - 2) continue;
      if (taken.some((other, i) => (i >= marks || rank >= must) && i !== rank && overlap(box, other))) continue;
      taken.push(box);
      // One that is there stays: a click on it that it did not outlast would be one beside it.
      const label = old.get(zone.name) || layer.appendChild(svg("text", { "data-zone": zone.name, text: zone.name }));
      old.delete(zone.name);
      const how = { x: u.toFixed(1), y: v.toFixed(1), "text-anchor": anchor, class: rank < must ? "name near" : "name" };
      for (const [key, value] of Object.entries(how)) setAttribute(label, key, value);
      break;
    }
  });
  for (const label of old.values()) label.remove();
  return taken.slice(before);
}
