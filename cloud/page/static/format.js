// Numbers and times as people read them.

export const NONE = "–";

export const known = (value) => typeof value === "number" && Number.isFinite(value);

// [least, most]; of very many values too, which Math.min(...values) does not take.
export const ends = (values) => values.reduce(([least, most], value) => [Math.min(least, value), Math.max(most, value)], [Infinity, -Infinity]);

// Four digits, as in the console's tables: 12.73, 8.655, 0.1234, 1234.
export function number(value, digits = 4) {
  if (!known(value)) return NONE;
  if (value === 0) return "0";
  const before = Math.floor(Math.log10(Math.abs(value))) + 1;
  if (before > 9 || before < -5) return value.toExponential(2).replace("-", "−");
  return value.toFixed(Math.max(0, Math.min(8, digits - before))).replace("-", "−");
}

// A chance: those that hardly ever come true all look alike.
export function chance(value) {
  if (!known(value)) return NONE;
  return value > 0 && value < 0.0005 ? "< 0.001" : value.toFixed(value < 0.0995 ? 3 : 2);
}

export function withUnit(value, unit, digits = 4) {
  return known(value) && unit ? `${number(value, digits)} ${unit}` : number(value, digits);
}

export function percent(value) {
  if (!known(value)) return NONE;
  const rounded = (100 * value).toFixed(1);
  if (Number(rounded) === 0) return "0.0 %";
  return `${value > 0 ? "+" : "−"}${rounded.replace("-", "")} %`;
}

export function bytes(value) {
  if (!known(value)) return NONE;
  let size = value;
  for (const unit of ["B", "kB", "MB", "GB"]) {
    if (size < 1000) return unit === "B" ? `${size} B` : `${number(size, 3)} ${unit}`;
    size /= 1000;
  }
  return `${number(size, 3)} TB`;
}

const WHOLE = new Intl.NumberFormat("en"); // making one anew for each number is slow
export const count = (value) => (known(value) ? WHOLE.format(value) : NONE);

export const plural = (n, word) => `${count(n)} ${word}${n === 1 ? "" : "s"}`;

// "30 of 30"; of a zone that left a run of long ago nobody has written it down.
export const roundOf = (status, rounds) => (known(status?.round) ? `${count(status.round)} of ${count(rounds)}` : NONE);

// The time of day; what was not today has its date, and its year if that is another.
export function time(epoch, now = new Date()) {
  if (!known(epoch)) return NONE;
  const then = new Date(1000 * epoch);
  if (then.toDateString() === now.toDateString()) return then.toLocaleTimeString("en-GB");
  const year = then.getFullYear() === now.getFullYear() ? {} : { year: "numeric" };
  return `${then.toLocaleDateString("en-GB", { day: "numeric", month: "short", ...year })}, ${then.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" })}`;
}

// Whole, with the month by its name: nobody takes it for the day.
export function date(epoch) {
  return known(epoch) ? new Date(1000 * epoch).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" }) : NONE;
}

// A few names, and how many more there are.
export function some(names, most) {
  if (names.length <= most) return names.join(", ");
  return `${names.slice(0, most).join(", ")} and ${names.length - most} more`;
}
