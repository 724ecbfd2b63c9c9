// Curves and histograms by plotly. A chart is drawn anew only when what it shows has changed: at most four times a second, or, out
// of sight, when the browser has nothing else to do: whoever prints the page, or takes a picture of all of it, has not scrolled.

import { byId } from "./dom.js";

const EVERY = 250; // ms: less than lies between two messages, so that none waits for the last drawing's sake
const UNSEEN = 10000; // ms between two drawings of a chart that is out of sight
const IDLE = 2000; // ms that such a drawing waits for an idle browser
const AGAIN = 5000; // ms until what did not load is asked for again

export const RIGHT = 16; // pixels beside a chart: half the number of its last round, which is not told else

let plotly = null;

// The script is large: the map does not wait for it, and it is asked for after the run. It is asked for while the page
// loads, so that the page has not loaded without it: who takes a picture of it then (chromium --screenshot) has all charts.
export const fetchAhead = () => load().catch(() => {}); // a chart that needs it asks again

function load() {
  plotly ||= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = "/plotly.min.js";
    script.onload = () => resolve(window.Plotly);
    script.onerror = () => {
      plotly = null; // a tunnel may be back in a moment
      script.remove();
      reject(new Error("This chart is not drawn: /plotly.min.js could not be loaded. Is the cloud still there? It is asked again every few seconds."));
    };
    document.head.append(script);
  });
  return plotly;
}

// Safari may not have it; and a browser that is never idle draws all the same.
const whenIdle = window.requestIdleCallback ? (work) => window.requestIdleCallback(work, { timeout: IDLE }) : requestAnimationFrame;

// A colour of the style sheet as plotly takes it.
const probe = document.createElement("span");
probe.hidden = true;
export function ink(name) {
  if (!probe.isConnected) document.body.append(probe);
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
}

export class Chart {
  // `draw()` gives {traces, layout, said}: the last is for those who do not see it.
  constructor(id, store, topics, draw) {
    this._node = byId(id);
    this._draw = draw;
    this._due = this._seen = this._missing = false;
    this._last = -Infinity;
    this._timer = 0;
    this._store = store;
    store.subscribe((changed) => {
      if (topics.some((topic) => changed.has(topic))) this._wanted(changed.has("chosen") || changed.has("round"));
    });
    window.addEventListener("themechange", () => this._wanted(true));
    window.addEventListener("beforeprint", () => this._show()); // what is not drawn by then is not printed
    new ResizeObserver(() => this._wanted(true)).observe(this._node);
    new IntersectionObserver(([entry]) => {
      this._seen = entry.isIntersecting;
      if (this._seen && this._due) this._wanted(true);
    }, { rootMargin: "200px" }).observe(this._node);
  }

  _wanted(now) {
    this._due = true;
    if (!this._store.run || !this._node.clientWidth) return; // one that is not laid out is wanted again when it is
    const [every, turn] = this._seen ? [EVERY, requestAnimationFrame] : [UNSEEN, whenIdle];
    const wait = now ? 0 : Math.max(0, this._last + every - performance.now());
    if (this._timer && !now) return;
    clearTimeout(this._timer);
    this._timer = setTimeout(() => turn(() => this._show()), wait);
  }

  async _show() {
    clearTimeout(this._timer);
    this._timer = 0;
    if (!this._due || !this._store.run || !this._node.clientWidth) return;
    this._due = false;
    this._last = performance.now();
    const { traces, layout, said } = this._draw();
    this._node.setAttribute("aria-label", said);
    try {
      const Plotly = await load();
      if (this._missing) this._node.replaceChildren(); // the words that said so
      this._missing = false;
      await Plotly.react(this._node, traces, { ...base(this._node), ...layout }, { displayModeBar: false, responsive: false });
      if (!this._wired) this._wire();
    } catch (error) {
      this._node.textContent = error.message;
      this._missing = !plotly;
      if (this._missing) setTimeout(() => this._wanted(true), AGAIN);
    }
  }

  // A click on a zone's line chooses the zone.
  _wire() {
    this._wired = true;
    this._node.on("plotly_click", ({ points }) => {
      const name = points[0]?.customdata;
      if (name && name !== this._store.chosen) this._store.choose(name);
    });
  }
}

function base(node) {
  return {
    width: node.clientWidth,
    height: node.clientHeight,
    margin: { l: 46, r: RIGHT, t: 8, b: 36 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(node).fontFamily, size: 11.5, color: ink("soft") },
    showlegend: true,
    legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", font: { size: 11.5 }, itemclick: false, itemdoubleclick: false },
    hovermode: "closest",
    hoverlabel: { bgcolor: ink("card"), bordercolor: ink("line"), font: { color: ink("ink"), size: 12 } },
    dragmode: false,
  };
}

// Plotly reads some markup in its texts, links among it; a metric's name and unit are words of a device.
export const literal = (text) => text.replace(/[&<>]/g, " ");

export function axis(title, more = {}) {
  return {
    title: { text: literal(title), font: { size: 11.5 }, standoff: 6 },
    gridcolor: ink("grid"),
    zeroline: false,
    linecolor: ink("line"),
    tickcolor: ink("line"),
    fixedrange: true,
    ...more,
  };
}

// A mark at the round that is looked at.
export function roundMark(store) {
  if (store.round === null) return [];
  return [{ type: "line", x0: store.round, x1: store.round, y0: 0, y1: 1, yref: "paper", line: { color: ink("accent"), width: 1, dash: "dot" } }];
}
