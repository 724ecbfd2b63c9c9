// A zone's devices in words.

import { NONE, count } from "./format.js";

export function devicesText(store, zone) {
  const status = store.statusOf(zone);
  const expected = status?.expected || status?.attending;
  if (!expected) return zone.devices ? count(zone.devices) : NONE;
  const missing = [["late", status.late], ["gone", status.gone]].filter(([, devices]) => Object.keys(devices || {}).length);
  const words = missing.map(([word, devices]) => `, ${Object.keys(devices).length} ${word}`).join("");
  return `${count(status.attending)} of ${count(expected)}${words}`;
}
