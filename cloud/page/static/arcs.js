// Arcs from the zones that were asked to the zone that drew them: as wide at its end as their attention says, and thin
// where they start, so that the direction is seen without arrowheads.

import { svg } from "./dom.js";

const NARROWEST = 0.6;
const LEFT_OUT = 2; // as wide as the style sheet has those that were left out

const FULL = [0.05, 0.1, 0.2, 0.5, 1];

// The attention of an arc of full width: 1, or less where all that are shown have little, as among many zones drawn.
export const fullOf = (most) => FULL.find((full) => most <= full) || 1;

// In pixels, in proportion to attention; many zones have less room.
export const widthOf = (share, zones) => NARROWEST + ((zones > 30 ? 6 : 9) - NARROWEST) * share;

const at = (point) => `${point[0].toFixed(1)} ${point[1].toFixed(1)}`;

const BEND = 0.22; // of the way
const AIR = 4; // pixels to the map's edge: as the ends are off their zones, a curve comes out a little farther

// The control point of the curve: to the left of the way, so that two zones that ask each other have two arcs; as far as
// the curve stays within `room` = [width, height].
function bend(from, to, room, width) {
  const aside = [to[1] - from[1], from[0] - to[0]].map((way) => BEND * way);
  const share = Math.min(1, ...[0, 1].map((i) => reach(from[i], to[i], aside[i], room[i], AIR + width / 2)));
  return [0, 1].map((i) => (from[i] + to[i]) / 2 + share * aside[i]);
}

// The share of `aside` by which a curve from a to b may go aside between 0 and `room`. At t of the way it is 2t(1 - t) of
// that off the straight line, which is p there where it starts and q where it ends from the edge: it touches the edge
// where aside is the least p/2t + q/2(1 - t), and that is (√p + √q)²/2.
function reach(a, b, aside, room, air) {
  if (aside === 0) return 1;
  const [p, q] = [a, b].map((end) => Math.max(0, (aside < 0 ? end : room - end) - air));
  return (Math.sqrt(p) + Math.sqrt(q)) ** 2 / 2 / Math.abs(aside);
}

function normal([x, y], [u, v]) {
  const length = Math.hypot(u - x, v - y) || 1;
  return [-(v - y) / length, (u - x) / length];
}

const moved = (point, direction, by) => [point[0] + direction[0] * by, point[1] + direction[1] * by];

// Ends stay off the zones' middles by `gap` pixels.
function ends(from, to, gap, room, width) {
  const control = bend(from, to, room, width);
  const pull = (point, distance) => {
    const length = Math.hypot(control[0] - point[0], control[1] - point[1]) || 1;
    return moved(point, [(control[0] - point[0]) / length, (control[1] - point[1]) / length], Math.min(distance, length / 2));
  };
  return [pull(from, gap), control, pull(to, gap)];
}

function taper(from, to, width, gap, room) {
  const [start, control, end] = ends(from, to, gap, room, width);
  const thin = Math.max(0.35, width * 0.22);
  const [n, m, o] = [normal(start, control), normal(start, end), normal(control, end)];
  const side = (by) => [
    moved(start, n, (by * thin) / 2),
    moved(control, m, (by * (thin + width)) / 4),
    moved(end, o, (by * width) / 2),
  ];
  const [a, b, c] = side(1);
  const [d, e, f] = side(-1);
  return `M${at(a)}Q${at(b)} ${at(c)}L${at(f)}Q${at(e)} ${at(d)}Z`;
}

function curve(from, to, gap, room) {
  const [start, control, end] = ends(from, to, gap, room, LEFT_OUT);
  return `M${at(start)}Q${at(control)} ${at(end)}`;
}

// All arcs into one zone. `place(number)` is where a zone stands, or null; `wide(attention)` an arc's width; `room` the
// map's size.
export function arcsInto(zone, draw, place, gap, wide, room) {
  const group = svg("g", { class: "draw", "data-zone": zone.name });
  const to = place(zone.number);
  const entries = Object.entries(draw.attention).sort((a, b) => a[1] - b[1]);
  for (const [number, attention] of entries) {
    const from = place(Number(number));
    if (!from || !to) continue;
    const d = taper(from, to, wide(attention), gap, room);
    group.append(svg("path", { class: "arc", d, "data-from": number, "data-attention": attention }));
  }
  for (const number of Object.keys(draw.left_out)) {
    const from = place(Number(number));
    if (!from || !to) continue;
    group.append(svg("path", { class: "arc left-out", d: curve(from, to, gap, room), "data-from": number }));
  }
  return group;
}
