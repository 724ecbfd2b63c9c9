// What the charts show: learning curves, zones drawn, homophily, histograms.

import { Chart, RIGHT, axis, ink, literal, roundMark } from "./charts.js";
import { byId, setText } from "./dom.js";
import { count, known, number, plural, withUnit } from "./format.js";
import { areClasses, binName, labelUnit } from "./label_space.js";

export function charts(store) {
  new Chart("curves", store, ["run", "evaluations", "pooled", "chosen", "split", "round"], () => learning(store));
  new Chart("drawn", store, ["run", "series", "chosen", "round"], () => overRounds(store, 1, "zones drawn"));
  new Chart("homophily", store, ["run", "series", "chosen", "round"], () => overRounds(store, 2, "homophily"));
  new Chart("histogram", store, ["run", "chosen"], () => histogram(store));
}

const MOST_POINTS = 6000; // of thin lines: nobody sees more
const MOST_BUCKETS = 160; // of rounds, in a small chart
const COLUMN = { validation: 1, test: 2 };

// All rounds; of a run that has just begun, which would be a stroke at the left, a half of them, a quarter and so on.
function lastShown({ run, lastRound }) {
  let last = Math.max(1, run.rounds);
  while (last / 2 >= Math.max(10, 1.1 * lastRound)) last /= 2;
  return last;
}

function rounds(store, title) {
  const last = lastShown(store);
  return [title && last < store.run.rounds ? `${title}, of ${count(store.run.rounds)}` : title, { range: [0, last] }];
}

// For a template of plotly's.
const plain = (text) => literal(text).replace(/[%{}]/g, " ");

function learning(store) {
  const column = COLUMN[store.split];
  const traces = [];
  const { chosen } = store;
  const all = { x: [], y: [], customdata: [] };
  const points = store.zones.reduce((sum, zone) => sum + (store.series[zone.name]?.evaluations.length || 0), 0);
  const step = Math.ceil(points / MOST_POINTS);
  for (const zone of store.zones) {
    if (zone.name === chosen) continue;
    const rows = store.series[zone.name]?.evaluations || [];
    for (const [i, row] of rows.entries()) {
      if (i % step && i !== rows.length - 1) continue;
      all.x.push(row[0]);
      all.y.push(row[column]);
      all.customdata.push(zone.name);
    }
    all.x.push(null);
    all.y.push(null);
    all.customdata.push(null);
  }
  const faint = store.zones.length > 40 ? 0.35 : 0.6;
  const line = (name, rows, index, look) => ({
    x: rows.map((row) => row[0]),
    y: rows.map((row) => row[index]),
    name,
    line: { ...look, dash: index === COLUMN.validation ? "4px,3px" : "solid" },
    mode: rows.length < 3 ? "lines+markers" : "lines",
    showlegend: index === COLUMN.test,
    hovertemplate: `${name}, ${index === COLUMN.test ? "test" : "validation"}<br>round %{x}: %{y:.4g}<extra></extra>`,
  });
  const pooled = { color: ink(chosen ? "soft" : "accent"), width: chosen ? 1.6 : 2.4 };
  traces.push(
    { ...all, name: "each zone", mode: "lines", line: { color: ink("thread"), width: 1 }, opacity: chosen ? faint * 0.7 : faint, connectgaps: false, hovertemplate: "%{customdata}<br>round %{x}: %{y:.4g}<extra></extra>" },
    line("all zones", store.pooled, COLUMN.validation, pooled),
    line("all zones", store.pooled, COLUMN.test, pooled),
  );
  if (chosen) {
    const rows = store.series[chosen]?.evaluations || [];
    const mine = { color: ink("mark"), width: 2.4 };
    traces.push(line(plain(chosen), rows, COLUMN.validation, mine), line(plain(chosen), rows, COLUMN.test, mine));
  }
  traces.push({ x: [null], y: [null], mode: "lines", name: "validation", line: { color: ink("soft"), width: 2, dash: "4px,3px" } });
  const shapes = roundMark(store);
  const alone = chosen ? store.byName.get(chosen).alone : null;
  const annotations = [];
  if (known(alone)) {
    shapes.push({ type: "line", x0: 0, x1: 1, xref: "paper", y0: alone, y1: alone, line: { color: ink("mark"), width: 1, dash: "dash" } });
    const above = alone > (store.series[chosen]?.evaluations.at(-1)?.[2] ?? -Infinity); // on the side where the line is not
    annotations.push({ x: 1, xref: "paper", y: alone, text: "trained alone, test", showarrow: false, xanchor: "right", yanchor: above ? "bottom" : "top", font: { size: 10.5, color: ink("mark") }, bgcolor: ink("card"), borderpad: 1, opacity: 0.85 });
  }
  const unit = store.metric?.unit ? ` (${store.metric.unit})` : "";
  const last = store.pooled.at(-1);
  const range = yRange(store, chosen);
  const cut = range ? cutText(store, range[1]) : "";
  if (cut) annotations.push({ x: 1, xref: "paper", xanchor: "right", y: 1, yref: "paper", yanchor: "top", text: `↑ ${cut}`, showarrow: false, font: { size: 10.5 }, bgcolor: ink("card"), borderpad: 2 });
  return {
    traces,
    layout: { xaxis: axis(...rounds(store, "round")), yaxis: axis(`${store.metric?.name || ""}${unit}`, range ? { range } : {}), shapes, annotations },
    said: `Learning curves${cut && `, ${cut}`}. ${last ? `Pooled over all zones after round ${last[0]}: ${withUnit(last[2], store.metric?.unit)} on test samples.` : "Nothing evaluated yet."}`,
  };
}

// What is not in the picture: the start, zones that go higher later on, or both.
function cutText(store, top) {
  const rows = store.zones.map((zone) => (store.series[zone.name]?.evaluations || []).map((row) => row[COLUMN[store.split]] > top));
  const later = rows.filter((higher) => higher.indexOf(true, 1) > 0).length;
  const higher = [rows.some(([first]) => first) && "the start", later && plural(later, "zone")].filter(Boolean);
  return `cut at ${number(top, 2)}; higher: ${higher.join(", ")}`;
}

// The start, and a zone that runs away, would press all others to the floor: they may leave the picture. What is drawn
// thick never does after the start. Null if all fits.
function yRange(store, chosen) {
  const column = COLUMN[store.split];
  const after = (rows, columns) => rows.slice(1).flatMap((row) => columns.map((i) => row[i])).filter(known);
  const all = store.zones.flatMap((zone) => store.series[zone.name]?.evaluations || []).map((row) => row[column]).filter(known);
  const thin = store.zones.flatMap((zone) => after(store.series[zone.name]?.evaluations || [], [column])).sort((a, b) => a - b);
  const thick = [...after(store.pooled, [1, 2]), ...after(store.series[chosen]?.evaluations || [], [1, 2])];
  if (chosen) thick.push(store.byName.get(chosen).alone);
  if (thin.length < 8 || store.metric?.lower_is_better === false) return null;
  const most = highest(thick.filter(known), thin[Math.floor(0.96 * (thin.length - 1))]);
  const least = thick.filter(known).reduce((a, b) => Math.min(a, b), thin[0]);
  const room = 0.08 * (most - least || Math.abs(most) || 1);
  const top = most + 2 * room;
  const far = most + 0.5 * Math.abs(most); // a metric may be negative
  return highest(all, -Infinity) > Math.max(far, top) ? [least - room, top] : null;
}

function overRounds(store, column, what) {
  const [of, sum] = column === 1 ? [0, 1] : [2, 3];
  // Rounds that not all zones have finished would be the mean of a few.
  const means = store.means.slice(0, store.commonRound + 1).map((row, round) => [round, row[sum], row[of]]);
  const mean = buckets(means.filter(Boolean), lastShown(store));
  const rows = (store.chosen && store.series[store.chosen]?.rounds) || [];
  const mine = buckets(rows.map((row) => [row[0], row[column], known(row[column]) ? 1 : 0]), lastShown(store));
  const traces = [];
  if (store.chosen) {
    traces.push({
      ...mine,
      name: plain(store.chosen),
      mode: mine.x.length > 100 ? "lines" : "lines+markers",
      marker: { size: 3.5 },
      line: { color: ink("mark"), width: 1.2 },
      hovertemplate: `${plain(store.chosen)}<br>round %{x:.0f}: %{y:.3g}<extra></extra>`,
    });
  }
  traces.push({ ...mean, mode: "lines", line: { color: ink("accent"), width: 2 }, hovertemplate: "all zones<br>round %{x:.0f}: %{y:.3g}<extra></extra>" });
  const id = column === 1 ? "drawn" : "homophily";
  setText(byId(`${id}-mean`), `all zones ${number(average(mean.y), 3)}`);
  byId(`${id}-mine`).hidden = !store.chosen;
  setText(byId(`${id}-mine`), `${store.chosen} ${number(average(rows.map((row) => row[column])), 3)}`);
  return {
    traces,
    layout: { xaxis: axis(...rounds(store, "")), yaxis: axis("", { rangemode: "tozero", nticks: 4 }), shapes: roundMark(store), showlegend: false, margin: { l: 40, r: RIGHT, t: 8, b: 22 } },
    said: `${what} over ${mean.x.length} rounds, ${number(average(mean.y), 3)} on average.`,
  };
}

// The mean of every few rounds of a long run, from rows [round, sum, of how many]; null where there is none.
function buckets(rows, rounds) {
  const size = Math.ceil(rounds / MOST_BUCKETS);
  const found = new Map();
  for (const [round, sum, of] of rows) {
    const at = Math.ceil(round / size);
    const bucket = found.get(at) || [0, 0];
    found.set(at, [bucket[0] + (of ? sum : 0), bucket[1] + of]);
  }
  const entries = [...found];
  return {
    x: entries.map(([at]) => (at - 0.5) * size + 0.5),
    y: entries.map(([, [sum, of]]) => (of ? sum / of : null)),
  };
}

// Not `Math.max(...values)`: a hundred thousand arguments are too many.
const highest = (values, least) => values.reduce((a, b) => Math.max(a, b), least);

function average(values) {
  const all = values.filter(known);
  return all.length ? all.reduce((a, b) => a + b, 0) / all.length : null;
}

function histogram(store) {
  const zones = store.zones.filter((zone) => zone.histogram);
  const bins = highest(zones.map((zone) => zone.histogram.length), 0);
  const scaled = (shares) => {
    const sum = shares.reduce((a, b) => a + b, 0);
    return sum > 0 ? shares.map((share) => share / sum) : shares;
  };
  const all = zones.map((zone) => scaled(zone.histogram));
  const mean = Array.from({ length: bins }, (_, bin) => all.reduce((sum, shares) => sum + shares[bin], 0) / all.length);
  const x = mean.map((_, bin) => store.middle(bin));
  const edged = store.edges.length === bins + 1;
  const names = mean.map((_, bin) => literal(binName(store, bin)));
  const mine = store.chosen ? store.byName.get(store.chosen).histogram : null;
  const traces = [];
  if (mine) {
    const width = edged ? mean.map((_, bin) => 0.92 * (store.edges[bin + 1] - store.edges[bin])) : 0.92;
    traces.push({ type: "bar", x, y: scaled(mine), width, name: plain(store.chosen), marker: { color: ink("mark") }, opacity: 0.75, customdata: names.map(() => null), text: names, textposition: "none", hovertemplate: "%{text}: %{y:.1%}<extra></extra>" });
  } else if (!store.chosen) {
    traces.push(...(zones.length > 24 ? band(x, all) : eachZone(x, all, zones)));
  }
  traces.push({ x, y: mean, mode: "lines", name: "mean of all zones", line: { color: ink("accent"), width: 2.2, shape: "hvh" }, text: names, hovertemplate: "mean, %{text}: %{y:.1%}<extra></extra>" });
  const unit = labelUnit(store) ? ` (${labelUnit(store)})` : "";
  const ticks = areClasses(store) ? { tickprefix: "class ", tick0: 0, dtick: Math.ceil(bins / 6) } : {};
  return {
    traces,
    layout: bins
      ? { xaxis: axis(edged ? `label${unit}` : "label's bin", ticks), yaxis: axis("", { rangemode: "tozero", tickformat: ".0%" }), bargap: 0, margin: { l: 44, r: 10, t: 8, b: 36 } }
      : { xaxis: { visible: false }, yaxis: { visible: false }, showlegend: false, annotations: [{ text: "No zone's histogram is known here.", showarrow: false }] },
    said: mine ? `Noised label histogram of ${store.chosen} beside the mean of all zones.` : "Mean of the zones' noised label histograms.",
  };
}

function eachZone(x, all, zones) {
  const lines = { x: [], y: [], customdata: [] };
  zones.forEach((zone, i) => {
    lines.x.push(...x, null);
    lines.y.push(...all[i], null);
    lines.customdata.push(...x.map(() => zone.name), null);
  });
  return [{ ...lines, mode: "lines", name: "each zone", line: { color: ink("thread"), width: 1 }, opacity: 0.6, connectgaps: false, hovertemplate: "%{customdata}: %{y:.1%}<extra></extra>" }];
}

// Between which shares four zones of five lie, bin by bin: a hundred lines would be a grey patch.
function band(x, all) {
  const at = (share) => x.map((_, bin) => all.map((shares) => shares[bin]).sort((a, b) => a - b)[Math.round(share * (all.length - 1))]);
  const side = { x, mode: "lines", line: { color: "rgba(0,0,0,0)", shape: "hvh" }, hoverinfo: "skip" };
  return [
    { ...side, y: at(0.1), showlegend: false },
    { ...side, y: at(0.9), fill: "tonexty", fillcolor: ink("line"), name: "four zones of five" },
  ];
}
