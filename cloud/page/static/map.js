// The map: zones where they lie, coloured, and who learns from whom in a round.

import { arcsInto, fullOf, widthOf } from "./arcs.js";
import { silent } from "./devices.js";
import { byId, focusOnly, setAttribute, setText, svg } from "./dom.js";
import { ends, number, plural } from "./format.js";
import { charted, fitted, graticule, layout, stretched } from "./geography.js";
import { overlap, placeLabels } from "./labels.js";
import { Zoom } from "./zoom.js";

const NONE = { attention: {}, left_out: {} };
const NOWHERE = { rings: [], points: [null] };
const ARROWS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };

export class ZoneMap {
  constructor(store, palette, tooltip) {
    this._store = store;
    this._palette = palette;
    this._tooltip = tooltip;
    this._svg = byId("map");
    this._layers = Object.fromEntries(
      ["graticule", "areas", "apart", "arcs", "points", "labels"].map((name) => [name, byId(`map-${name}`)]),
    );
    this._marks = new Map();
    this._drawn = new Map(); // by zone: what its arcs show
    this._size = [0, 0];
    this._zoom = new Zoom(this._svg, () => this._place());
    new ResizeObserver(() => this._place()).observe(this._svg);
    this._listen();
    store.subscribe((changed) => this._update(changed));
  }

  _update(changed) {
    const store = this._store;
    if (!store.run) return;
    if (changed.has("run")) this._rebuild();
    if (["run", "status", "round", "draws", "colour", "evaluations", "tree", "chosen"].some((topic) => changed.has(topic))) this._paint();
    if (changed.has("run") || changed.has("chosen")) this._select();
    if (changed.has("chosen") && !this._inSight(store.chosen)) this._zoom.reset();
    this._arcs();
  }

  _rebuild() {
    const zones = this._store.zones;
    const key = JSON.stringify(zones.map((zone) => [zone.name, zone.place, zone.at, zone.devices]));
    if (key === this._key) return;
    this._key = key;
    const focused = this._svg.contains(document.activeElement) ? document.activeElement.dataset.zone : null;
    this._plane = layout(zones);
    this._marks.clear();
    this._drawn.clear();
    for (const layer of Object.values(this._layers)) layer.replaceChildren();
    for (const zone of zones) {
      const { rings, points } = this._plane.shapes.get(zone.name) || NOWHERE;
      const areal = rings.length > 0;
      const mark = svg("g", { class: areal ? "zone area" : "zone point", role: "option", tabindex: -1, "data-zone": zone.name, "aria-selected": "false" });
      if (areal) mark.append(svg("path", { class: "shape" }));
      mark.append(...points.map(() => svg("circle", { class: "shape" })));
      this._layers[areal ? "areas" : "points"].append(mark);
      if (areal) this._layers.points.append(svg("circle", { class: "pin", r: 3, "data-pin": zone.number }));
      this._marks.set(zone.name, mark);
    }
    this._svg.classList.toggle("areal", this._layers.areas.childElementCount > 0);
    const first = this._marks.get(focused) || this._marks.values().next().value;
    if (first) first.tabIndex = 0;
    const apart = this._plane.apart.length;
    byId("map-note").hidden = this._plane.geographic && !apart;
    setText(byId("map-note"), this._plane.geographic ? `${plural(apart, "zone")} without a known place, below the line` : "Laid out by likeness: the run has no places");
    this._size = [0, 0];
    this._full = null;
    this._place();
    this._marks.get(focused)?.focus({ preventScroll: true });
  }

  // Everything by the size of the picture and the reader's zoom.
  _place() {
    const { clientWidth: width, clientHeight: height } = this._svg.parentElement;
    if (!this._plane || !width || !height) return;
    this._size = [width, height];
    setAttribute(this._svg, "viewBox", `0 0 ${width} ${height}`);
    const plane = stretched(this._plane, width, height);
    const view = fitted(plane, width, height, this._zoom);
    const zones = this._store.zones;
    const crowd = Math.sqrt((width * height) / Math.max(zones.length, 1));
    const base = Math.max(4.5, Math.min(15, crowd / 11)) * Math.min(1.5, Math.sqrt(this._zoom.scale));
    const most = Math.max(1, ends(zones.map((zone) => zone.devices || 0))[1]);
    const above = charted(plane, height);
    const shown = ([, y]) => (y < above ? "inherit" : "hidden"); // below the line is room for those without a place alone
    this._where = new Map();
    this._radius = new Map();
    this._under = new Set();
    for (const zone of zones) {
      const shape = plane.shapes.get(zone.name);
      const mark = this._marks.get(zone.name);
      const spot = shape ? view.to(shape.anchor) : this._spotApart(zone, width, height);
      const radius = base * (0.72 + 0.5 * Math.sqrt((zone.devices || 0) / most));
      this._where.set(zone.number, spot);
      if (shape && spot[1] >= above) this._under.add(zone.name);
      if (shape?.rings.length) {
        mark.firstChild.setAttribute("d", shape.rings.map((ring) => `M${ring.map((p) => view.to(p).map((v) => v.toFixed(1)).join(" ")).join("L")}Z`).join(""));
        this._radius.set(zone.number, 3);
        const pin = this._layers.points.querySelector(`[data-pin="${zone.number}"]`);
        pin.setAttribute("cx", spot[0].toFixed(1));
        pin.setAttribute("cy", spot[1].toFixed(1));
        pin.setAttribute("visibility", shown(spot));
      } else this._radius.set(zone.number, radius);
      const spots = shape ? shape.points.map(view.to) : [spot];
      mark.querySelectorAll("circle").forEach((circle, i) => {
        circle.setAttribute("cx", spots[i][0].toFixed(1));
        circle.setAttribute("cy", spots[i][1].toFixed(1));
        circle.setAttribute("r", radius.toFixed(1));
        if (shape) circle.setAttribute("visibility", shown(spots[i]));
      });
    }
    this._layers.graticule.replaceChildren(...(plane.geographic ? graticule(plane, view, width, above) : []).flatMap((each) => line(each, width)));
    this._layers.apart.replaceChildren(...(above < height ? [svg("rect", { x: -1, y: above, width: width + 2, height: height - above + 1 })] : []));
    this._drawn.clear();
    this._layers.arcs.replaceChildren();
    this._labels();
    this._arcs();
  }

  _spotApart(zone, width, height) {
    const apart = this._plane.apart;
    return [(width * (apart.indexOf(zone.name) + 1)) / (apart.length + 1), height - 34];
  }

  _labels() {
    const store = this._store;
    const first = store.chosen ? [store.byName.get(store.chosen), ...this._peers(store.byName.get(store.chosen))] : [];
    const above = (zone) => !this._under.has(zone.name);
    const order = [...new Set([...first, ...store.zones.toSorted((a, b) => (b.devices || 0) - (a.devices || 0))])].filter(above);
    const names = placeLabels(this._layers.labels, order, this._where, this._radius, this._size, first.filter(above).length, byId("map-note").hidden ? [] : [[0, 0, 280, 28]]);
    for (const text of this._layers.graticule.querySelectorAll("text")) {
      setAttribute(text, "visibility", names.some((name) => overlap(name, boxOf(text))) ? "hidden" : "inherit");
    }
  }

  _peers(zone) {
    const { attention, left_out } = this._store.drawOf(zone);
    return [...Object.keys(attention), ...Object.keys(left_out)].map((n) => this._store.byNumber.get(Number(n))).filter(Boolean);
  }

  _paint() {
    const palette = this._palette.current;
    this._svg.classList.toggle("measured", Boolean(palette.kind.fromZero)); // all zones, not those that it drew alone
    for (const zone of this._store.zones) {
      const mark = this._marks.get(zone.name);
      if (!mark) continue;
      for (const part of mark.children) setAttribute(part, "fill", palette.of(zone));
      const value = palette.value(zone);
      const status = this._store.statusOf(zone);
      const state = status?.state || "";
      mark.classList.toggle("silent", silent(status));
      setAttribute(mark, "aria-label", `${zone.name}: ${palette.kind.label(this._store)} ${palette.kind.text(this._store, value)}, ${state}`);
    }
  }

  _select() {
    const { chosen, byName } = this._store;
    const peers = new Set(chosen ? this._peers(byName.get(chosen)).map((zone) => zone.name) : []);
    this._svg.classList.toggle("alone", chosen !== null);
    for (const [name, mark] of this._marks) {
      mark.classList.toggle("chosen", name === chosen);
      mark.classList.toggle("peer", peers.has(name));
      setAttribute(mark, "aria-selected", name === chosen);
    }
    if (this._where) this._labels();
  }

  // A zone that was chosen elsewhere may lie beyond what the reader has zoomed to.
  _inSight(name) {
    const [x, y] = (name && this._where?.get(this._store.byName.get(name).number)) || [1, 1];
    return x > 0 && y > 0 && x < this._size[0] && y < this._size[1] && !this._under?.has(name);
  }

  // Only the arcs of zones that drew anew are made anew.
  _arcs() {
    const store = this._store;
    if (!this._where) return;
    const draws = store.zones.map((zone) => (store.chosen === null ? store.drawAmongAll(zone) : store.chosen === zone.name ? store.drawOf(zone) : NONE));
    const weights = draws.flatMap(({ attention }) => Object.values(attention));
    const full = weights.length ? fullOf(ends(weights)[1]) : this._full || 1;
    if (full !== this._full) this._scale(full);
    let changed = false;
    store.zones.forEach((zone, i) => {
      const key = JSON.stringify(draws[i]);
      const old = this._drawn.get(zone.name);
      if (old?.key === key) return;
      changed = true;
      const place = (n) => (this._under.has(store.byNumber.get(n)?.name) ? null : this._where.get(n) || null); // out of sight
      const wide = (attention) => widthOf(attention / full, store.zones.length);
      const group = arcsInto(zone, draws[i], place, this._radius.get(zone.number) * 0.9, wide, this._size);
      old ? old.group.replaceWith(group) : this._layers.arcs.append(group);
      this._drawn.set(zone.name, { key, group });
    });
    if (!changed) return;
    this._svg.classList.toggle("dense", weights.length > 80); // outlines would hide what is below
    this._layers.arcs.style.setProperty("--arc", String(Math.max(0.16, Math.min(0.75, 5.5 / Math.sqrt(weights.length + 1)))));
    if (store.chosen !== null) this._select();
  }

  _scale(full) {
    this._full = full;
    this._drawn.clear();
    this._layers.arcs.replaceChildren();
    const half = widthOf(1, this._store.zones.length) / 2;
    setAttribute(byId("legend-arc"), "d", `M2 ${11 - half * 0.22}L60 ${11 - half}V${11 + half}L2 ${11 + half * 0.22}Z`);
    setText(byId("legend-full"), `attention ${full}`);
  }

  _listen() {
    const zoneOf = (event) => event.target.closest?.(".zone, .name")?.dataset.zone;
    this._svg.addEventListener("click", (event) => {
      if (this._zoom.dragged) return;
      const name = zoneOf(event) || event.target.closest?.(".draw")?.dataset.zone;
      if (event.target.matches(".name")) focusOnly(this._marks.get(name), this._marks.values()); // arrows go on from there
      if (name) this._store.choose(name);
      else if (this._store.chosen !== null) this._store.choose(null);
    });
    this._svg.addEventListener("pointermove", (event) => this._hover(event, zoneOf(event)));
    this._svg.addEventListener("pointerleave", () => this._hover(null));
    this._svg.addEventListener("focusin", (event) => {
      const name = zoneOf(event);
      if (!name || !event.target.matches(":focus-visible")) return;
      if (!this._inSight(name)) this._zoom.reset();
      const box = event.target.getBoundingClientRect();
      this._tooltip.zone(name, box.right, box.top);
    });
    this._svg.addEventListener("focusout", () => this._tooltip.hide());
    this._svg.addEventListener("keydown", (event) => this._key_(event));
  }

  _hover(event, name) {
    const arc = event?.target.closest?.(".arc");
    const shown = name || arc?.parentElement.dataset.zone;
    for (const [zone, { group }] of this._drawn) group.classList.toggle("lit", zone === shown);
    this._svg.classList.toggle("hovering", Boolean(shown));
    if (name) this._tooltip.zone(name, event.clientX, event.clientY);
    else if (arc) this._tooltip.text(this._arcText(arc), event.clientX, event.clientY);
    else this._tooltip.hide();
  }

  _arcText(arc) {
    const asked = this._store.byNumber.get(Number(arc.dataset.from));
    const drawing = arc.parentElement.dataset.zone;
    const reason = this._store.drawOf(this._store.byName.get(drawing)).left_out[arc.dataset.from];
    if (reason !== undefined) return [`${asked.name} → ${drawing}`, `left out: ${reason}`];
    return [`${asked.name} → ${drawing}`, `attention ${number(Number(arc.dataset.attention), 3)}`];
  }

  _key_(event) {
    const mark = event.target.closest?.(".zone");
    if (!mark) return;
    if (event.key === "Enter" || event.key === " ") {
      this._store.choose(mark.dataset.zone);
      event.preventDefault();
    } else if (ARROWS[event.key]) {
      const next = this._towards(mark.dataset.zone, ARROWS[event.key]);
      if (next) focusOnly(this._marks.get(next.name), this._marks.values());
      event.preventDefault();
    }
  }

  // The nearest zone in a direction; those aside count as farther.
  _towards(name, [right, down]) {
    const here = this._where.get(this._store.byName.get(name).number);
    let best = null;
    for (const zone of this._store.zones) {
      const [x, y] = this._where.get(zone.number).map((value, i) => value - here[i]);
      const along = x * right + y * down;
      const aside = Math.abs(x * down) + Math.abs(y * right);
      if (zone.name === name || along <= 0.5) continue;
      const cost = along + 2.5 * aside;
      if (best === null || cost < best.cost) best = { cost, zone };
    }
    return best?.zone;
  }
}

// Of a degree beside its line: it makes way for a name.
function boxOf(text) {
  const [x, y] = ["x", "y"].map((name) => Number(text.getAttribute(name)));
  return [x, y - 9, x + 6 * text.textContent.length, y + 2];
}

function line({ from, to, text }, room) {
  const upright = from[0] === to[0];
  const [x, y] = upright ? [from[0] + 4, to[1] - 6] : [6, from[1] - 4];
  const mark = svg("line", { x1: from[0], y1: from[1], x2: to[0], y2: to[1] });
  return upright && x > room - 34 ? [mark] : [mark, svg("text", { x, y, text })];
}
