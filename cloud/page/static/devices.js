// A zone's devices in words.

import { NONE, count, some } from "./format.js";

const UNHEARD = new Set(["lost", "not answering"]);

// Whether nothing is heard of its edge: nobody knows then who attends.
export const silent = (status) => UNHEARD.has(status?.state);

// Those of one zone that are late or gone, by what befell them: a host that is lost is one line, and not forty.
export function missingText(kind, devices) {
  const named = new Map();
  for (const [device, why] of Object.entries(devices || {})) named.set(why, [...(named.get(why) || []), device]);
  const groups = [...named].sort((a, b) => b[1].length - a[1].length);
  return groups.map(([why, names]) => `${some(names, 3)} ${names.length === 1 ? "is" : "are"} ${kind}: ${why}`);
}

export function devicesText(store, zone) {
  const status = store.statusOf(zone);
  const expected = status?.expected || status?.attending;
  if (!expected) return zone.devices ? count(zone.devices) : NONE;
  if (silent(status)) return `? of ${count(expected)}`;
  const missing = [["late", status.late], ["gone", status.gone]].filter(([, devices]) => Object.keys(devices || {}).length);
  const words = missing.map(([word, devices]) => `, ${Object.keys(devices).length} ${word}`).join("");
  return `${count(status.attending)} of ${count(expected)}${words}`;
}
