// Where zones stand: latitude and longitude made flat, or the places that likeness gives them.

import { ends } from "./format.js";

const radians = (degrees) => (degrees * Math.PI) / 180;

// {rings, points, anchor} of every zone in a plane whose y grows downwards; `apart` are the names of those that have no
// place while others do.
export function layout(zones) {
  const placed = zones.filter((zone) => zone.place?.length);
  if (!placed.length) {
    const shapes = new Map(zones.map((zone) => [zone.name, pointShape([zone.at[0], 1 - zone.at[1]])]));
    return { shapes, geographic: false, apart: [] };
  }
  const longitudes = placed.flatMap((zone) => zone.place.flatMap((ring) => ring.map(([, longitude]) => longitude)));
  const turn = crossesDateLine(longitudes);
  const latitudes = placed.flatMap((zone) => zone.place.flatMap((ring) => ring.map(([latitude]) => latitude)));
  const middle = ends(latitudes).reduce((south, north) => (south + north) / 2);
  const squeeze = Math.max(Math.cos(radians(middle)), 0.05); // a degree of longitude there, in degrees of latitude
  const flat = ([latitude, longitude]) => [squeeze * (turn && longitude < 0 ? longitude + 360 : longitude), -latitude];
  const shapes = new Map(placed.map((zone) => [zone.name, shape(zone.place.map((ring) => ring.map(flat)))]));
  return { shapes, geographic: true, squeeze, turn, apart: zones.filter((zone) => !zone.place?.length).map((zone) => zone.name) };
}

// Fiji's zones stand together, not at both ends of the world.
function crossesDateLine(longitudes) {
  const span = (values) => ends(values).reduce((west, east) => east - west);
  return span(longitudes) > 180 && span(longitudes.map((value) => (value < 0 ? value + 360 : value))) < span(longitudes);
}

const pointShape = (point) => ({ rings: [], points: [point], anchor: point });

function shape(rings) {
  const polygons = rings.filter((ring) => ring.length > 2);
  const points = rings.filter((ring) => ring.length <= 2).map((ring) => ring[0]);
  if (!polygons.length) return { rings: [], points, anchor: midmost(points) };
  const largest = polygons.reduce((a, b) => (Math.abs(area(b)) > Math.abs(area(a)) ? b : a));
  return { rings: polygons, points, anchor: centroid(largest) };
}

// That of several points which the others lie around: arcs end at a mark.
function midmost(points) {
  const [x, y] = mean(points);
  const off = (point) => Math.hypot(point[0] - x, point[1] - y);
  return points.reduce((a, b) => (off(b) < off(a) ? b : a));
}

const mean = (points) => [0, 1].map((i) => points.reduce((sum, point) => sum + point[i], 0) / points.length);

function area(ring) {
  let sum = 0;
  ring.forEach(([x, y], i) => {
    const [u, v] = ring[(i + 1) % ring.length];
    sum += x * v - u * y;
  });
  return sum / 2;
}

function centroid(ring) {
  const whole = area(ring);
  if (Math.abs(whole) < 1e-12) return mean(ring);
  const sum = [0, 0];
  ring.forEach(([x, y], i) => {
    const [u, v] = ring[(i + 1) % ring.length];
    const cross = x * v - u * y;
    sum[0] += (x + u) * cross;
    sum[1] += (y + v) * cross;
  });
  return sum.map((value) => value / (6 * whole));
}

const STRIP = 60; // pixels at the bottom, for zones that have no place

// How high the picture is without that strip, which no coordinates are true of.
export const charted = ({ apart }, height) => height - (apart.length ? STRIP : 0);

// From the plane to the picture: everything fits, with a margin; `zoom` = {scale, x, y} of the reader on top.
export function fitted(plane, width, height, zoom) {
  const corners = [...plane.shapes.values()].flatMap((s) => [...s.rings.flat(), ...s.points]);
  const reach = [0, 1].map((i) => ends(corners.map((point) => point[i])));
  const above = charted(plane, height);
  const margin = { x: Math.min(64, width * 0.11), y: Math.min(48, height * 0.11) };
  const room = [width - 2 * margin.x, above - 2 * margin.y];
  const extent = reach.map(([low, high]) => high - low);
  const least = Math.max(...extent, 1e-6) / 1000; // all zones in a line, or in one place
  const scale = Math.min(room[0] / Math.max(extent[0], least), room[1] / Math.max(extent[1], least), 1e7);
  const middle = reach.map(([low, high]) => (low + high) / 2);
  const centre = [width / 2, above / 2];
  const k = scale * zoom.scale;
  const at = [0, 1].map((i) => centre[i] - middle[i] * k + (i ? zoom.y : zoom.x) * zoom.scale);
  return {
    scale: k,
    to: (point) => [at[0] + point[0] * k, at[1] + point[1] * k],
    from: (pixel) => [(pixel[0] - at[0]) / k, (pixel[1] - at[1]) / k],
  };
}

// Likeness fills the picture: neither direction means a distance on Earth.
export function stretched(plane, width, height) {
  if (plane.geographic) return plane;
  const wide = Math.min(Math.max(width / height, 0.6), 1.9);
  const shapes = new Map();
  for (const [name, { anchor }] of plane.shapes) shapes.set(name, pointShape([anchor[0] * wide, anchor[1]]));
  return { ...plane, shapes };
}

const STEPS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30];

// Lines of latitude and longitude that cross the picture, some hundred and fifty pixels apart.
export function graticule({ squeeze, turn }, view, width, height) {
  const [[west, north], [east, south]] = [view.from([0, 0]), view.from([width, height])];
  const step = STEPS.find((s) => s * view.scale >= 110) || 30;
  const lines = [];
  for (let latitude = Math.ceil(-south / step) * step; latitude <= -north; latitude += step) {
    if (Math.abs(latitude) > 90) continue;
    const y = view.to([0, -latitude])[1];
    lines.push({ from: [0, y], to: [width, y], text: degrees(latitude, "N", "S") });
  }
  for (let longitude = Math.ceil(west / squeeze / step) * step; longitude <= east / squeeze; longitude += step) {
    const x = view.to([squeeze * longitude, 0])[0];
    lines.push({ from: [x, 0], to: [x, height], text: degrees(turn && longitude > 180 ? longitude - 360 : longitude, "E", "W") });
  }
  return lines;
}

function degrees(value, positive, negative) {
  const rounded = Math.round(10 * Math.abs(value)) / 10;
  return `${rounded}°${rounded ? (value > 0 ? positive : negative) : ""}`;
}
