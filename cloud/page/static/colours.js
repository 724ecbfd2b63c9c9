// Scales that colour-blind people can read too, and what each way of colouring means.

import { known, number, percent, withUnit } from "./format.js";
import { LabelSpace, areClasses, labelUnit } from "./label_space.js";

const VIRIDIS = ["#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30", "#f1e51d"];
const PLASMA = ["#41049d", "#6a00a8", "#8f0da4", "#b12a90", "#cc4778", "#e16462", "#f2844b", "#fca636", "#fcce25"];
const DIVERGING = ["#b35806", "#e08214", "#f5b872", "#c8ccd4", "#8fbfe0", "#4393c3", "#2166ac"];
// Two directions at once: from blue to orange, which everybody tells apart, and from dark to light.
const [DARK, LIGHT] = [
  ["#0b4c92", "#463f90", "#643380", "#782963", "#84253f", "#852a0e", "#6f4000"],
  ["#91c1ff", "#b4b5ff", "#d7a7f6", "#f19fd6", "#ff9daf", "#ffa287", "#f3ad66"],
];
const UNKNOWN = "var(--unknown)";

const channels = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

const colourAt = (stops, share) => rgb(between(stops, share));

// Of a place in the unit square, [0, 0] below on the left.
export const colourOf = ([right, up]) => rgb(mixed(between(DARK, right), between(LIGHT, right), Math.min(Math.max(up, 0), 1)));

const rgb = (colour) => `rgb(${colour.map(Math.round).join(" ")})`;
const mixed = (a, b, share) => a.map((value, i) => value + share * (b[i] - value));

function between(stops, share) {
  const place = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const left = Math.min(Math.floor(place), stops.length - 2);
  return mixed(channels(stops[left]), channels(stops[left + 1]), place - left);
}

// At many zones one outlier must not take all the colours.
function span(values) {
  const sorted = values.filter(known).sort((a, b) => a - b);
  if (!sorted.length) return null;
  const cut = sorted.length > 20 ? Math.round(0.03 * sorted.length) : 0;
  return [sorted[cut], sorted[sorted.length - 1 - cut]];
}

export const COLOURINGS = {
  error: {
    label: (store) => store.metric?.name || "Error",
    title: (store) => `${nameOf(store)} on test samples, model kept so far`,
    value: (store, zone) => store.errorOf(zone),
    text: (store, value) => withUnit(value, store.metric?.unit),
    stops: VIRIDIS,
    // Bright is good.
    reversed: (store) => store.metric?.lower_is_better !== false,
    ends: (store) => (store.metric?.lower_is_better === false ? ["worse", "better"] : ["better", "worse"]),
  },
  alone: {
    label: () => "Gain over alone",
    title: (store) => `Gain over the zone trained alone, in ${nameOf(store)}`,
    value: (store, zone) => store.gain(store.errorOf(zone), zone.alone),
    text: (_, value) => percent(value),
    stops: DIVERGING,
    symmetric: true,
    ends: () => ["alone is better", "sharing helps"],
    missing: (store) =>
      store.zones.some((zone) => known(zone.alone))
        ? ""
        : store.comparing
          ? "Not known yet: zones are being trained alone. It is shown here when that is done."
          : store.run.comparing
            ? "Unknown here: zones were being trained alone when this page was closed. `sgfusion view` shows what came of it."
          : "Unknown here: no zone was trained alone for comparison. `sgfusion up` does that at its end; the cloud takes --alone DIR.",
  },
  before: {
    label: () => "Gain over before",
    title: (store) => `Gain over the zone before training, in ${nameOf(store)}`,
    value: (store, zone) => store.gain(store.errorOf(zone), zone.before),
    text: (_, value) => percent(value),
    stops: DIVERGING,
    symmetric: true,
    ends: () => ["worse", "better"],
    missing: (store) => (store.zones.some((zone) => known(zone.before)) ? "" : "Unknown until a zone was evaluated."),
  },
  labels: {
    label: () => "Labels",
    title: () => "Label histograms: the nearer two zones' colours, the more alike their labels",
    value: (_, zone, space) => space.nearest(zone.name),
    text: (_, value) => (value ? `nearest to those of ${value.zone.name}, d ${number(value.distance, 3)}` : "not compared yet"),
    plane: true,
    missing: (store) => (store.tree ? "" : "Unknown until the cloud has made a plan: that is when it compares histograms."),
  },
  mean: {
    label: () => "Mean label",
    title: (store) => `Mean label by the zone's noised histogram${store.edges.length ? "" : " (number of the bin)"}`,
    value: (store, zone) => store.meanLabel(zone),
    text: (store, value) => withUnit(value, store.edges.length ? labelUnit(store) : ""),
    stops: PLASMA,
    ends: () => ["low", "high"],
    missing: (store) => {
      if (areClasses(store)) return "Labels are classes here: their numbers have no mean.";
      return store.zones.some((zone) => zone.histogram) ? "" : "No zone's histogram is known here.";
    },
  },
};

// What `labels` becomes while a zone is seen alone.
const LIKENESS = {
  label: (store) => `Distance of labels to ${store.chosen}`,
  title: (store) => `Distance d of label histograms to ${store.chosen}'s`,
  value: (store, zone, space) => space.between(store.chosen, zone.name),
  text: (_, value) => `d ${number(value, 3)}`,
  stops: PLASMA.toReversed(),
  fromZero: true,
  ends: () => ["alike", "unlike"],
};

const nameOf = (store) => (store.metric ? store.metric.name : "the error");

// The colouring now in force: a colour for each zone, and what the legend needs.
export function colouring(store) {
  const space = new LabelSpace(store);
  const kind = store.colour === "labels" && space.has(store.chosen) ? LIKENESS : COLOURINGS[store.colour];
  const values = new Map(store.zones.map((zone) => [zone.name, kind.value(store, zone, space)]));
  if (kind.plane) return onPlane(store, kind, values, space);
  let range = span([...values.values()]);
  if (range && kind.fromZero) range = [0, range[1]];
  if (range && kind.symmetric) {
    const reach = Math.max(Math.abs(range[0]), Math.abs(range[1]), 0.01);
    range = [-reach, reach];
  }
  const stops = kind.reversed?.(store) ? [...kind.stops].reverse() : kind.stops;
  const share = (value) => (range[1] > range[0] ? (value - range[0]) / (range[1] - range[0]) : 0.5);
  return {
    kind,
    range,
    stops,
    value: (zone) => values.get(zone.name) ?? null,
    of: (zone) => {
      const value = values.get(zone.name);
      return known(value) && range ? colourAt(stops, share(value)) : UNKNOWN;
    },
  };
}

// By two numbers of a zone, not by one: `places` are for the legend.
function onPlane(store, kind, values, space) {
  const places = new Map(store.zones.map((zone) => [zone.name, space.place(zone.name)]));
  return {
    kind,
    places,
    value: (zone) => values.get(zone.name) ?? null,
    of: (zone) => (places.get(zone.name) ? colourOf(places.get(zone.name)) : UNKNOWN),
  };
}
